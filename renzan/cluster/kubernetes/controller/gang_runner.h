#pragma once

// Jobs that have not ended, and their pods: carries out the scheduler's decisions and tracks their
// effects.
//
// Decisions change the facts in memory at once; Flush() then makes them true, in this order: the
// state of each changed job is written to the server; pods of gangs that start are created, all of
// a gang, then the Service by which they find each other; the pods are bound; pods of gangs that
// stop are deleted. A job whose state could not be written is put back as the server has it, and
// nothing is done about it. A gang that cannot be created and bound as a whole is deleted as a
// whole. For one thread.
//
// One Flush() does a limited amount of work, so that what watches report meanwhile does not wait
// for thousands of gangs: HasWork() says whether there is more. Until its state is written, nothing
// is done for a job.
//
// gang_runner_flush.cc has Flush(), gang_runner_pods.cc the events of pods, gang_runner_end.cc the
// ends of attempts.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/engine/lifecycle.h"
#include "renzan/cluster/kubernetes/controller/inventory.h"
#include "renzan/cluster/kubernetes/controller/pod_book.h"
#include "renzan/cluster/kubernetes/controller/requests.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster::kubernetes {

// A worker of the current attempt, by rank.
struct Worker {
  std::string node;
  std::optional<Pod> pod;  // as last seen
  bool gone = false;       // its object was deleted
  bool bound = false;
  bool told_to_stop = false;
  bool ended_by_itself = false;  // as Pod's

  bool ended() const { return gone || (pod && pod->ended); }
};

// The worker that seems to have failed first; null if none has failed. Workers that had been told
// to stop come after those that had not, whatever clocks say: their exit status, which says that
// they have saved their work, would hide why that was necessary.
const Worker* FirstFailed(const std::vector<Worker>& workers);

// A GangJob that has not ended, with its workers. The snapshot has a Job with the same id.
struct LiveGang {
  GangJob object;  // `status` as it should be; the server's once written
  RetryPolicy policy;
  std::vector<Worker> workers;
  // The workers of the attempt that ended last: until its end is written, nobody else knows how it
  // ended.
  std::vector<Worker> last_workers;
  bool created = false;  // all of its pods have existed and been bound
  bool started = false;  // all of its workers have run
  // Its workers did not all start in time, whatever exit status those that did have.
  bool never_started = false;
  std::string start_trouble;  // why a worker cannot start, as far as is known
  // Why the attempt is being ended, if not by a stop request.
  std::optional<EndedBy> ended_by;
  std::optional<int> first_exit_code;  // of the worker that was seen to fail first
  std::string end_message;
  bool deleted = false;  // the object is deleted; its pods are not gone yet
  bool has_service = false;
  // When it was taken over from an earlier leader, whose last requests may still be in flight.
  TimeMs adopted_at = 0;
  // Its user has changed the specification since the attempt began.
  bool edited = false;
  // The limit of its namespace that holds it; empty: none.
  std::string forbidden;
  TimeMs wait_told_at = 0;
  // Versions written by us that no watch has shown yet: those are not news.
  std::set<std::string> own_versions;
};

class GangRunner : private Journal, private Workers {
 public:
  // `identity`: the leader's, which statuses name as their writer. `at_once`: see
  // ControllerOptions.
  GangRunner(std::string identity, size_t at_once, Snapshot& snapshot, Inventory& inventory,
             PodBook& pods, Requests& requests, const Clock& clock);

  // The term in the statuses that it writes.
  void SetTerm(int64_t term) { term_ = term; }

  std::map<JobId, LiveGang>& live() { return live_; }
  const std::map<JobId, LiveGang>& live() const { return live_; }
  int64_t failed_requests() const { return failed_requests_; }
  // How many attempts ended in each way (one word each).
  const std::map<std::string, int64_t>& attempt_ends() const { return attempt_ends_; }
  // Null if there is none.
  LiveGang* FindByUid(const std::string& uid);

  // Adds a job that has not ended, as the server has it. Its `job` is pending; if the object had
  // workers when it was written, they are taken over.
  void Add(GangJob object, Job job);
  // Its status must be written: it has been admitted, or waits for another reason.
  void Write(JobId id) { to_write_.insert(id); }
  // Its user has deleted the object or cancelled the job.
  void Cancel(JobId id, const std::string& why);
  void ObjectDeleted(JobId id);

  // Whether the pod is a worker of an attempt that has not ended. Anybody can write owners and
  // labels, in any namespace; but a name exists only once, and only the controller binds its pods.
  bool IsWorker(const Pod& pod) const;
  // Pods of the job have changed.
  void Check(JobId id);
  void NodeLost(int node);
  // Requested by the user. A job that cannot save a checkpoint is left alone.
  void RequestCheckpoint(JobId id) { to_checkpoint_.insert(id); }
  void RequestStop(JobId id, const std::string& why);
  // Tells the user why it waits: one word, and one line.
  void TellWait(JobId id, const std::string& reason, const std::string& message);
  bool WillWrite(JobId id) const { return to_write_.contains(id); }
  // Deletes a pod that nobody needs: of an earlier attempt, or of a job that no longer exists.
  void DeleteOrphan(const Pod& pod);
  // Ends attempts that have run for too long. Returns when to call it again.
  TimeMs CheckTimeouts();

  void CarryOut(const Decisions& decisions);
  // Sets what buys and returns nodes.
  void OnNodeChange(std::function<void(const NodeChange&)> perform) {
    change_node_ = std::move(perform);
  }
  // Does some of the work, the most important first. False: some request failed; the next call
  // tries it again.
  bool Flush();
  // Jobs whose state could not be written, so that it is unknown what the server has. The owner
  // reads them again and forgets what was decided about them.
  std::set<JobId> TakeToReload() { return std::exchange(to_reload_, {}); }
  void Forget(JobId id) { Remove(id); }
  void ReloadLater(JobId id) { to_reload_.insert(id); }
  // Whether, since the last call, a job has ended or is about to end other than by a decision.
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Whether Flush() has anything to do.
  bool HasWork() const { return HasMoreThanEvents() || !to_tell_.empty(); }

 private:
  // Facts are those of the status, which is written later.
  const JobFacts& FactsOf(JobId job) const override { return live_.at(job).object.status; }
  const AttemptFacts& AttemptOf(JobId job) const override { return live_.at(job).object.status; }
  void Commit(const Transition& transition) override;
  void Commit(const std::vector<std::pair<JobId, NamedPlacement>>& reservations,
              const std::vector<JobId>& no_longer_backfilled) override;

  NamedPlacement Assign(const Job&, const Placement& placement) override {
    return WithNames(snapshot_, placement);
  }
  const Resources* Offered(int node) const override { return inventory_.Offered(node); }
  void Start(JobId job) override;
  void Stop(JobId job) override { StopWorkers(live_.at(job)); }
  void Checkpoint(JobId job) override;
  void Change(const NodeChange& change) override { change_node_(change); }
  void Ended(JobId job, const Placement& placement, const EndedAttempt& how) override;

  void Remove(JobId id) { Remove(std::set{id}); }
  void Remove(const std::set<JobId>& ids);
  static void MeasureCheckpoint(LiveGang& live);
  void End(LiveGang& live, EndedBy by, const std::string& message);
  void EndWithNode(LiveGang& live, const std::string& node);
  // A node of the attempt that was lost before this replica led, so that workers elsewhere may have
  // failed because of it; empty: none.
  std::string LostNodeOf(const LiveGang& live, const Job& job) const;
  void SeeDeleted(LiveGang& live);
  void SeeFailed(LiveGang& live);
  void SeeStart(LiveGang& live);
  void EndUnstarted(LiveGang& live);
  void Finish(LiveGang& live);
  AttemptEnd EndOf(const LiveGang& live, const Job& job) const;
  void CommitEnd(LiveGang& live, const Transition& transition);
  void StopWorkers(LiveGang& live);
  // The next of the jobs that are to start.
  std::set<JobId> NextToStart();
  // Takes jobs out of to_write_: `gangs`, and others that are not about to start.
  std::vector<JobId> NextToWrite(const std::set<JobId>& gangs);
  bool WriteStates(const std::set<JobId>& gangs);
  bool StartGangs(std::set<JobId> gangs);
  // These return the gangs for which something failed.
  std::set<JobId> FindClaims(const std::set<JobId>& gangs);
  std::set<JobId> CreateServices(const std::set<JobId>& gangs);
  std::set<JobId> CreatePods(const std::set<JobId>& gangs);
  std::set<JobId> BindPods(const std::set<JobId>& gangs);
  static void CannotStart(LiveGang& live, const ApiError& error, std::set<JobId>& failed);
  bool DeletePods();
  void AskForCheckpoints();
  void Tell(const LiveGang& live, const std::string& reason, const std::string& message,
            bool warning = false);
  void WriteEvents();
  bool HasMoreThanEvents() const {
    return !to_write_.empty() || !to_start_.empty() || !to_delete_.empty() ||
           !to_checkpoint_.empty();
  }
  TimeMs Now() const { return clock_.UnixMs(); }

  const std::string identity_;
  const size_t at_once_;
  int64_t term_ = 0;
  Snapshot& snapshot_;
  Inventory& inventory_;
  PodBook& pods_;
  Requests& requests_;
  const Clock& clock_;
  Lifecycle lifecycle_;
  std::map<JobId, LiveGang> live_;
  std::map<std::string, JobId> by_uid_;
  std::set<JobId> to_write_, to_start_, to_checkpoint_, to_reload_;
  struct Deletion {
    JobId job;  // 0: no job
    std::string ns, name, uid;
    std::optional<int64_t> grace_seconds;
  };
  std::vector<Deletion> to_delete_;
  struct Event {
    JobId job;
    std::string ns, name, uid;  // of its object
    std::string reason, message;
    bool warning;
    TimeMs at;
  };
  std::vector<Event> to_tell_;
  int64_t events_ = 0;
  std::function<void(const NodeChange&)> change_node_;
  bool changed_ = false;
  int64_t failed_requests_ = 0;
  std::map<std::string, int64_t> attempt_ends_;
  std::set<std::string> dropped_;  // fields that the server drops, already reported
};

}  // namespace renzan::cluster::kubernetes
