#pragma once

// The lives of jobs: carries out decisions, and what users and nodes do to gangs. Each transition
// is committed to a journal first, then the snapshot changes, then workers are told. The daemon,
// the Kubernetes controller and the simulator are journals and workers (journal.h) of it, so that
// counting, back-off, requeues and restarts are the same in all three. For one thread.

#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/core/engine/journal.h"

namespace renzan::cluster {

class Lifecycle : private Environment {
 public:
  Lifecycle(Snapshot& snapshot, Journal& journal, Workers& workers, const Clock& clock)
      : snapshot_(snapshot), journal_(journal), workers_(workers), clock_(clock) {}

  // Returns whether anything has changed that another cycle would see.
  bool CarryOut(const Decisions& decisions);

  // `user` wants a running job to stop and to wait again. Does nothing to other jobs.
  void Stop(JobId job, const std::string& user);
  // The workers of a job end for another reason than a decision. The caller ends them.
  void Evict(JobId job, const std::string& why);
  // Ends a pending job, and stops one that has workers. Tells the user `why`. Returns its state.
  RecordState Cancel(JobId job, const std::string& why);

  // All its workers have ended. Requeues it, or starts it where it was to move, if its room is
  // still there. `may_restart`: a job that its user has changed meanwhile waits instead.
  EndedAttempt Finish(JobId job, const AttemptEnd& end, const EndRules& rules, TimeMs now,
                      bool may_restart = true);

 private:
  void Commit(const cluster::Start& start) override;
  void Commit(const cluster::Stop& stop) override;
  void Commit(const Resize& resize) override;
  void Commit(const NodeChange& change) override { journal_.Commit(change); }
  void Commit(const std::vector<Reservation>& reservations) override;
  void Perform(const cluster::Start& start) override { workers_.Start(start.job); }
  void Perform(const cluster::Stop& stop) override { workers_.Stop(stop.job); }
  void Perform(const Resize& resize) override { workers_.Stop(resize.job); }
  void Perform(const CheckpointRequest& request) override { workers_.Checkpoint(request.job); }
  void Perform(const NodeChange& change) override { workers_.Change(change); }

  // Commits that the attempt ends, as `after` says. `reason` is the attempt's, `text` the user's.
  void CommitStop(Transition::Kind kind, const Job& after, const std::string& reason,
                  const std::string& text);
  bool HasRoom(const Job& job, const Placement& placement) const;

  Snapshot& snapshot_;
  Journal& journal_;
  Workers& workers_;
  const Clock& clock_;
};

}  // namespace renzan::cluster
