#pragma once

// A small random cluster that evolves from a seed: it carries decisions out, jobs come and end,
// nodes come and go. After every scheduling cycle it checks the invariants of invariants.h, and
// that the same snapshot gives the same decisions. Violations are collected, so that a test can
// print them with the seed. Not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/core/testing/random_snapshot.h"

namespace renzan::cluster {

// All decisions as text, for messages and comparisons.
std::string Describe(const Decisions& decisions);

class RandomEnvironment : private Environment {
 public:
  using Policy = std::function<Decisions(const Snapshot&)>;

  RandomEnvironment(uint64_t seed, Policy policy);

  // Causes some external events (jobs submitted or finished, spot notices, drains, node failures),
  // runs a cycle after each, and lets some time pass.
  void Disturb();

  // Lets three days pass without external events or job ends: stops and resizes must cease.
  void Settle();

  // No more submissions or failures, failed nodes come back, and the budget is unlimited: every job
  // that can run here at all must end.
  void Finish();

  const Snapshot& snapshot() const { return snapshot_; }
  const std::vector<std::string>& violations() const { return violations_; }
  int cycles() const { return cycles_; }
  int starts() const { return starts_; }
  int stops() const { return stops_; }
  int resizes() const { return resizes_; }

 private:
  // What is hidden from the scheduler.
  struct Work {
    TimeMs total = 0, left = 0;
    TimeMs leaves_at = kNever;  // while stopping or resizing
  };

  void Report(const std::string& violation);
  // Runs cycles until nothing more is decided at this moment. Returns look_again.
  TimeMs Decide();
  void Perform(const Start&) override { ++starts_; }
  void Perform(const Stop& stop) override;
  void Perform(const Resize& resize) override;
  void Perform(const CheckpointRequest& request) override;
  void Perform(const NodeChange&) override {}
  void Submit();
  void FailNode(int node);
  void DisturbNode();
  void FinishJob(size_t index);
  // To `until` or the next event, whichever comes first.
  void Advance(TimeMs until);
  void Leave(Job& job);
  void TellToLeave(JobId id);
  void Vacate(const Job& job);
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
  bool jobs_end_ = true;
  std::vector<std::string> violations_;
  int cycles_ = 0, starts_ = 0, stops_ = 0, resizes_ = 0;
};

}  // namespace renzan::cluster
