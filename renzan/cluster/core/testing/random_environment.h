#pragma once

// A small cluster that lives: it carries decisions out, jobs come and end, nodes come and go, all
// drawn from a seed. After every cycle the promises of invariants.h are checked, and that the same
// snapshot gives the same decisions. What is wrong is kept, not thrown: a test prints it with the
// seed. Not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/core/testing/random_snapshot.h"

namespace renzan::cluster {

// All of it, for messages and comparisons.
std::string Describe(const Decisions& decisions);

class RandomEnvironment {
 public:
  using Policy = std::function<Decisions(const Snapshot&)>;

  RandomEnvironment(uint64_t seed, Policy policy);

  // Some events from outside (jobs submitted or finished, spot notices, drains, lost nodes), a
  // cycle for each, and some time.
  void Disturb();

  // Nothing from outside happens and no job ends for three days: stops and resizes must come to an
  // end by themselves.
  void Settle();

  // Nothing is submitted or lost any more, what was lost comes back, and the budget is unlimited:
  // every job must end that can run here at all.
  void Finish();

  const Snapshot& snapshot() const { return snapshot_; }
  const std::vector<std::string>& violations() const { return violations_; }
  int cycles() const { return cycles_; }
  int starts() const { return starts_; }
  int stops() const { return stops_; }
  int resizes() const { return resizes_; }

 private:
  // What the snapshot knows and the scheduler does not.
  struct Work {
    TimeMs total = 0, left = 0;
    TimeMs leaves_at = kNever;  // while stopping or resizing
  };

  void Report(const std::string& violation);
  // Cycles until nothing more is decided at this moment. Returns when to look again.
  TimeMs Decide();
  bool Apply(const Decisions& decisions);
  void Submit();
  void FailNode(int node);
  void DisturbNode();
  void FinishJob(size_t index);
  // Up to `until`, or the next thing that happens by itself.
  void Advance(TimeMs until);
  void Leave(Job& job);
  void Requeue(Job& job);
  void Progress(TimeMs by);
  void EndJobsThatAreDone();
  TimeMs NextEvent() const;
  void UpdateNodes();
  bool CanEverRun(const Job& job) const;

  Draws draws_;
  const Policy policy_;
  Snapshot snapshot_;
  std::map<JobId, Work> work_;
  JobId next_job_ = 1;
  int next_node_ = 1000;
  bool jobs_end_ = true;
  std::vector<std::string> violations_;
  int cycles_ = 0, starts_ = 0, stops_ = 0, resizes_ = 0;
};

}  // namespace renzan::cluster
