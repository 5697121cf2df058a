#pragma once

// When the workers of an attempt are ended, by which signals, and what is to be said about it: the
// supervisor's judgement without its processes. A pure state machine; time is passed in, in seconds
// since an arbitrary moment. Not thread-safe.
//
//   a worker fails (by itself, while others run)   SIGTERM to the others, 5 s or the plan's grace
//   a stop is requested                            SIGTERM to all, the grace asked for; again when
//   a
//                                                  later request shortens it and the job saves on
//                                                  stop
//   a worker uses too much memory                  SIGKILL to it; the others as on failure
//   the timeout cycles                             SIGTERM to all, the plan's grace
//   a node is lost                                 SIGKILL to its workers; the others as on failure
//
// After the grace SIGKILL. A grace can only become shorter. The first reason stays the attempt's,
// except that the loss of a node while the workers obey a request takes its place.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

class GangState {
 public:
  struct Signal {
    int rank;
    int number;          // SIGTERM; SIGKILL is for the worker's whole process group
    bool again = false;  // only for a worker that still handles it
  };
  struct Exit {
    int rank;
    int exit_code;  // 128 + signal if one killed it
    int signal;     // 0: it exited
  };

  // All workers run from `now` on.
  GangState(const AttemptPlan& plan, double now);

  // Ends that were found together: the gravest of them is taken for the first.
  void WorkersEnded(std::vector<Exit> exits, double now);
  void StopRequested(double grace_seconds, double now);
  void NodeFailed(const std::string& node, double now);
  // More than the plan gives the worker.
  void MemoryExceeded(int rank, int64_t used_mib, double now);

  // The signals to be sent now; each is returned once.
  std::vector<Signal> Step(double now);
  // When Step() will have something new to say even if nothing happens.
  std::optional<double> NextStep() const;

  // When those that run are killed, if they are being ended.
  std::optional<double> kill_at() const { return kill_at_; }

  bool AnyRunning() const;
  bool running(int rank) const { return workers_[static_cast<size_t>(rank)].running; }

  // When nobody runs any more. Without started_ms and ended_ms.
  AttemptEnd Result() const;

 private:
  struct Worker {
    bool running = true;
    std::optional<double> told;  // with SIGTERM: when it is killed
    bool lost = false;           // its node is
    int64_t too_much_mib = 0;    // of memory, that it used
    bool killed = false;         // by us
    AttemptEnd::Worker end;
  };

  void BeginToEnd(EndedBy by, double grace_seconds, double now);
  double FailureGrace() const;
  std::string NameOf(int rank) const;
  std::string HowItEnded(int rank) const;
  std::string TooMuchMemory(int rank) const;
  std::string Message() const;

  AttemptPlan plan_;
  double timeout_at_;
  std::vector<Worker> workers_;
  EndedBy by_ = EndedBy::kItself;
  std::optional<double> kill_at_;  // set: they are being ended
  double grace_seconds_ = 0;       // what was left to them
  double terminated_at_ = 0;       // the first SIGTERM
  double killed_after_ = 0;        // that, by us because the grace was over; 0: nobody
  std::optional<int> first_failed_;
  std::string failed_node_;  // the first
};

}  // namespace renzan::cluster::local
