#pragma once

// The controller without its threads, connections and clock: takes what watches report, runs the
// scheduler, and has its decisions carried out. For one thread.
//
// The API server's objects are the only truth: everything else is rebuilt from them by a new leader
// (gang_job.h).
//
// controller_jobs.cc handles the jobs' objects, controller_policy.cc the effects of policies and
// queues on them.

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/kubernetes/api/watch.h"
#include "renzan/cluster/kubernetes/controller/controller_counts.h"
#include "renzan/cluster/kubernetes/controller/ended_jobs.h"
#include "renzan/cluster/kubernetes/controller/gang_runner.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/controller/namespace_rights.h"
#include "renzan/cluster/kubernetes/controller/pod_book.h"
#include "renzan/cluster/kubernetes/controller/policies.h"
#include "renzan/cluster/kubernetes/controller/pool_keeper.h"
#include "renzan/cluster/kubernetes/controller/queue_keeper.h"
#include "renzan/cluster/kubernetes/controller/requests.h"
#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::kubernetes {

enum class Source { kJobs, kPods, kNodes, kQueues, kPools, kPolicies };
inline constexpr std::array kAllSources = {Source::kJobs,   Source::kPods,  Source::kNodes,
                                           Source::kQueues, Source::kPools, Source::kPolicies};
const Kind& KindOf(Source source);

struct ControllerOptions {
  std::string identity;  // of this replica; unique among all processes ever run
  // Called with each cycle before its decisions are carried out.
  std::function<void(const record::CycleView&)> on_cycle;
  // The work of one turn, which then takes about a second: the workers that start (one gang at
  // least), and the states written in addition to those of their gangs.
  size_t at_once = 256;
  // This replica, and thus every one, checks at admission who submits a job. Otherwise nobody does.
  bool serves_admission = false;
  // Its right to run jobs is bound in some namespaces only: it asks in which.
  bool rights_by_namespace = false;
};

class Controller {
 public:
  // `api`, `requests` and `clock` must outlive it.
  Controller(const ControllerOptions& options, Api& api, Requests& requests, const Clock& clock);

  // Throws Error kTempFail if another replica leads by now: then this object cannot be used any
  // more.
  void Take(Source source, const WatchChange& change);

  // Handles what has changed, and schedules if that could change anything. Throws as Take().
  // Returns when to call it again at the latest (kNever: only after another change). Nothing
  // happens before every source has been listed.
  TimeMs Turn();

  const Snapshot& snapshot() const { return snapshot_; }
  const std::map<JobId, LiveGang>& live() const { return runner_.live(); }
  const ControllerCounts& counts() const { return counts_; }
  const std::map<std::string, int64_t>& attempt_ends() const { return runner_.attempt_ends(); }
  int64_t failed_requests() const { return runner_.failed_requests(); }
  // The waits of the last cycle.
  const std::vector<Wait>& waits() const { return waits_; }
  // Why decisions were not carried out; empty: all were.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void TakeJob(const std::shared_ptr<const Json>& object);
  void CheckWriter(const GangJob& job) const;
  void Begin();
  void Admit(GangJob object);
  void Update(LiveGang& live, GangJob object);
  void HonourRequests(LiveGang& live);
  // Called when its user changed the specification of a job that has workers.
  void Edit(LiveGang& live);
  // For a job that an earlier leader has started: what its workers have, although its user may
  // since have changed what it asks for.
  void TakeOver(LiveGang& live, Job& job);
  void SpecifyAll();
  void ApplyPolicy();
  void ApplyQueues();
  // Applies users' changes to jobs that no longer have workers.
  void ApplyEdits();
  // Drops what was needed only by jobs that no longer exist.
  void DropUnused();
  // Holds pending jobs that their queues or namespaces may not have, and releases them again.
  void ApplyLimits();
  // Asks whether it may run the jobs that wait.
  void AskForRights();
  void HandleNodes();
  void HandlePods();
  void Reload();
  void ReadDoubtfulPods();
  void Schedule();
  void CountUse(TimeMs now);
  // Writes into waiting jobs' statuses why they wait; only some at a time if there are many. True:
  // there are more.
  bool TellWaits();
  TimeMs Now() const { return clock_.UnixMs(); }

  const ControllerOptions options_;
  Api& api_;
  Requests& requests_;
  const Clock& clock_;
  Snapshot snapshot_;
  PodBook pods_;
  Inventory inventory_;
  PoolKeeper pools_;
  Policies policies_;
  QueueKeeper queues_;
  NamespaceRights rights_;
  EndedJobs ended_;
  GangRunner runner_;

  std::set<Source> synced_;
  bool begun_ = false;
  std::map<std::string, GangJob> arrived_;  // by uid, until the first turn
  JobId last_job_ = 0;
  std::set<std::string> unreadable_;  // uids of jobs that are left alone, and their pods
  int64_t last_term_ = 0;             // seen before it leads, then its own
  bool needs_scheduling_ = true;
  std::vector<Wait> waits_;
  std::vector<std::string> violations_;
  TimeMs schedule_at_ = kNever;
  int64_t cycles_ = 0;
  ControllerCounts counts_;
  TimeMs counted_until_ = 0;
};

}  // namespace renzan::cluster::kubernetes
