#pragma once

// Decides when the workers of an attempt are ended, by which signals, and with which message. A
// pure state machine without processes; times are seconds since an arbitrary moment. Not
// thread-safe.
//
//   a worker fails while others run   SIGTERM to the others; grace: 5 s or the plan's, if shorter
//   stop requested                    SIGTERM to all; the requested grace. Another SIGTERM when a
//                                     later request shortens it and the job saves on stop
//   a worker uses too much memory     SIGKILL to it; the others as after a failure
//   the job's files take too much     SIGKILL to all
//   timeout, which may be changed     SIGTERM to all; the plan's grace
//   a node fails                      SIGKILL to its workers; the others as after a failure
//
// SIGKILL follows at the end of the grace period, which can be shortened but not extended. The
// first reason is the attempt's, except that a node failure replaces a stop request.

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

  // Workers that were found to have ended. The most severe failure is taken to be the first one.
  void WorkersEnded(std::vector<Exit> exits, double now);
  void StopRequested(double grace_seconds, double now);
  // Counts from the start; 0: none. It changes nothing for workers that are being ended.
  void TimeLimitChanged(int64_t timeout_ms);
  void NodeFailed(const std::string& node, double now);
  // The worker uses more memory than the plan allows.
  void MemoryExceeded(int rank, int64_t used_mib, double now);
  // The job's files take more than the plan allows.
  void DiskExceeded(int64_t used_mib, double now);

  // The signals to send now; each is returned once.
  std::vector<Signal> Step(double now);
  // When to call Step() again even if nothing happens.
  std::optional<double> NextStep() const;

  // When running workers will be killed, if they are being ended.
  std::optional<double> kill_at() const { return kill_at_; }

  bool AnyRunning() const;
  bool running(int rank) const { return workers_[static_cast<size_t>(rank)].running; }

  // Once no worker runs. Without started_ms and ended_ms.
  AttemptEnd Result() const;

 private:
  struct Worker {
    bool running = true;
    std::optional<double> told_deadline;  // kill_at_ at its last SIGTERM
    bool node_failed = false;
    int64_t too_much_mib = 0;  // memory it used, if that was too much
    bool killed = false;       // by the supervisor
    AttemptEnd::Worker end;
  };

  void BeginToEnd(EndedBy by, double grace_seconds, double now);
  double FailureGrace() const;
  std::string NameOf(int rank) const;
  std::string DescribeEndOf(int rank) const;
  std::string TooMuchMemory(int rank) const;
  std::string TooMuchDisk() const;
  std::string Message() const;

  AttemptPlan plan_;
  double began_;
  double timeout_at_;
  std::vector<Worker> workers_;
  EndedBy by_ = EndedBy::kItself;
  std::optional<double> kill_at_;  // set once they are being ended
  double terminated_at_ = 0;       // the first SIGTERM
  double killed_after_ = 0;        // from then to the SIGKILL at the end of the grace; 0: none
  int64_t too_much_disk_mib_ = 0;  // that the job's files took, if that ended the gang
  std::optional<int> first_failed_;
  std::string failed_node_;  // the first one
};

}  // namespace renzan::cluster::local
