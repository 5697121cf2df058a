#pragma once

// The rule of the daemon: every transition of a job is committed to the store before it is carried
// out and before memory changes. A kill -9 between any two steps leaves a state that
// Controller::Recover() completes, and a full disk (Error kIo) leaves store and memory as they
// were. This is the one place at which transitions are committed.

#include <optional>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/local/controller/cluster_state.h"
#include "renzan/cluster/local/controller/inherited_files.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/controller/pool_observer.h"
#include "renzan/cluster/local/controller/usage_ledger.h"
#include "renzan/cluster/local/store/store.h"

namespace renzan::cluster::local {

class TransitionLog {
 public:
  TransitionLog(ClusterState& state, Store& store, UsageLedger& usage, PoolObserver& pools,
                const InheritedFiles& inherited, const JobDirectories& directories,
                const Clock& clock)
      : state_(state),
        store_(store),
        usage_(usage),
        pools_(pools),
        inherited_(inherited),
        directories_(directories),
        clock_(clock) {}

  // The job's next state, with an event (`kind`, `text`) and the attempt that has `ended`, as one
  // transaction. Usage is counted up to `until`, when the transition happened: from then on other
  // jobs may use the nodes. What a job inherited is removed when it has ended, and what nobody
  // reads any more.
  void Commit(const JobRecord& record, const std::optional<AttemptRecord>& ended,
              const std::string& kind, const std::string& text, TimeMs until,
              const std::optional<EarlyFailure>& early_failure = {});

  // As UsageLedger::Until().
  TimeMs Until(TimeMs time) const { return usage_.Until(time); }
  // Usage has been committed up to then: the daemon was running then, and so were its jobs.
  TimeMs accounted_until() const { return usage_.accounted_until(); }

 private:
  void LearnRunTime(const JobRecord& record);
  void PutUsageSpan(const JobRecord& record, const AttemptRecord& attempt);

  ClusterState& state_;
  Store& store_;
  UsageLedger& usage_;
  PoolObserver& pools_;
  const InheritedFiles& inherited_;
  const JobDirectories& directories_;
  const Clock& clock_;
};

}  // namespace renzan::cluster::local
