#pragma once

// What the environments of a Lifecycle (lifecycle.h) provide: where facts about jobs are kept, and
// what runs workers. The daemon has a database and supervisors, a Kubernetes controller the
// statuses of GangJobs and pods, a simulation memory and virtual time.

#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/engine/attempts.h"
#include "renzan/cluster/core/engine/nodes.h"

namespace renzan::cluster {

// A job's next state, to be recorded as a whole.
struct Transition {
  enum class Kind {
    kStarted,
    kStopping,    // by a decision, or because its user asked for it
    kResizing,    // to AttemptFacts::target
    kEvicted,     // something else ends its workers: its node fails
    kCancelling,  // its user has cancelled it while it had workers
    kCancelled,   // while it had none
    kEnded,       // the attempt has: `end` and `ended` say how
  };
  Kind kind;
  JobId job;
  JobFacts facts;
  AttemptFacts attempt;  // empty once it has ended
  std::string text;      // for the user, in one line
  TimeMs when;
  const AttemptEnd* end = nullptr;
  const EndedAttempt* ended = nullptr;
};

class Journal {
 public:
  virtual ~Journal() = default;

  // Of a job that has not ended, as of its last transition.
  virtual const JobFacts& FactsOf(JobId job) const = 0;
  virtual const AttemptFacts& AttemptOf(JobId job) const = 0;

  // Records a change before the snapshot follows; after an exception it has not happened. An
  // optimistic journal writes it later. If it then finds that the job has changed elsewhere, it
  // forgets the job, and restores it from what it finds there (RestoreJob).
  virtual void Commit(const Transition& transition) = 0;
  virtual void Commit(const NodeChange&) {}
  // All rooms that are kept, by job. These jobs no longer run where one is kept: they are
  // backfilled no more.
  virtual void Commit(const std::vector<std::pair<JobId, NamedPlacement>>& reservations,
                      const std::vector<JobId>& no_longer_backfilled) = 0;
};

// Called after the snapshot has changed. What cannot be done now is retried by the implementation.
class Workers {
 public:
  virtual ~Workers() = default;

  // The names and devices that a job which starts at `placement` gets.
  virtual NamedPlacement Assign(const Job& job, const Placement& placement) = 0;
  // What its workers together may use of a node, whoever uses it now. Null: nothing starts there.
  virtual const Resources* Offered(int node) const = 0;

  virtual void Start(JobId job) = 0;
  // They save their work, and exit. Also for those that were told before.
  virtual void Stop(JobId job) = 0;
  virtual void Checkpoint(JobId job) = 0;
  virtual void Change(const NodeChange& change) = 0;
  // All of them have ended. They were at `placement`.
  virtual void Ended(JobId job, const Placement& placement, const EndedAttempt& how) = 0;
};

}  // namespace renzan::cluster
