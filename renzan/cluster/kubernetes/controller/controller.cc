#include "renzan/cluster/kubernetes/controller/controller.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/core/explain/why_it_waits.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr TimeMs kRetryMs = kSecond;

// How many statuses a turn writes only to say why a job waits.
constexpr int kWaitsTold = 64;
// For this many jobs, the next to start, that message is also kept up to date.
constexpr size_t kWaitsRefreshed = 64;
constexpr TimeMs kRefreshMs = kMinute;

// "user cap" to "UserCap", as conditions have it.
std::string ReasonWord(WaitReason reason) {
  std::string word;
  bool first = true;
  for (const char c : std::string(NameOf(reason))) {
    if (c == '_' || c == ' ')
      first = true;
    else
      word += std::exchange(first, false) ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return word;
}

}  // namespace

const Kind& KindOf(Source source) {
  switch (source) {
    case Source::kJobs:
      return GangJobs();
    case Source::kPods:
      return Pods();
    case Source::kNodes:
      return Nodes();
    case Source::kPools:
      return NodePools();
    case Source::kPolicies:
      return ClusterPolicies();
    case Source::kQueues:
      break;
  }
  return Queues();
}

Controller::Controller(const ControllerOptions& options, Api& api, Requests& requests,
                       const Clock& clock)
    : options_(options),
      api_(api),
      requests_(requests),
      clock_(clock),
      inventory_(snapshot_),
      pools_(snapshot_, inventory_, pods_, requests, clock),
      queues_(options.serves_admission),
      rights_(options.rights_by_namespace),
      runner_(options.identity, options.at_once, snapshot_, inventory_, pods_, requests, clock) {
  runner_.OnNodeChange([this](const NodeChange& change) { pools_.Perform(change); });
}

// --- What watches report.

void Controller::Take(Source source, const WatchChange& change) {
  using Type = WatchChange::Type;
  if (change.type == Type::kSynced) {
    for (const Json& item : *change.object)
      Take(source, {Type::kChanged, std::make_shared<const Json>(item)});
    synced_.insert(source);
    return;
  }
  if (change.type == Type::kRelisted) {
    if (source == Source::kPods) pods_.Relisted();
    return;
  }
  const bool deleted = change.type == Type::kDeleted;
  const Json& object = *change.object;
  const std::string uid = TextAt(object, {"metadata", "uid"});
  const std::string name = TextAt(object, {"metadata", "name"});
  switch (source) {
    case Source::kJobs:
      if (LiveGang* live = runner_.FindByUid(uid);
          live != nullptr && !deleted &&
          live->own_versions.erase(TextAt(object, {"metadata", "resourceVersion"})) > 0) {
        // Our own write, which is known already: it is not even parsed.
      } else if (!deleted) {
        TakeJob(change.object);
      } else if (live != nullptr) {
        runner_.ObjectDeleted(live->object.status.id);
        needs_scheduling_ = true;
      } else {
        arrived_.erase(uid);
        ended_.Remove(uid);
      }
      break;
    case Source::kPods:
      // The last state of a deleted pod often says how it ended.
      if (object.contains("spec")) pods_.Put(PodFrom(object));
      if (deleted) pods_.Remove(uid);
      break;
    case Source::kNodes:
      if (deleted)
        inventory_.Remove(name, Now());
      else
        inventory_.Put(NodeFrom(object), Now());
      break;
    case Source::kQueues:
      if (deleted)
        queues_.Remove(name);
      else
        queues_.Put(change.object);
      break;
    case Source::kPools:
      if (deleted)
        pools_.Remove(name);
      else
        pools_.Put(change.object);
      break;
    case Source::kPolicies:
      if (deleted)
        policies_.Remove(name);
      else
        policies_.Put(change.object);
      break;
  }
}

void Controller::TakeJob(const std::shared_ptr<const Json>& object) {
  GangJob job;
  try {
    job = GangJobFrom(object);
  } catch (const Error& error) {
    // Of a later version, or written by somebody else: it is left alone.
    LogError("{}", error.what());
    unreadable_.insert(TextAt(*object, {"metadata", "uid"}));
    return;
  }
  unreadable_.erase(job.uid);
  CheckWriter(job);
  if (!begun_) last_term_ = std::max(last_term_, job.status.term);
  if (LiveGang* live = runner_.FindByUid(job.uid)) {
    Update(*live, std::move(job));
  } else if (!HasEnded(job.status.state)) {
    arrived_.insert_or_assign(job.uid, std::move(job));
  } else {
    last_job_ = std::max(last_job_, job.status.id);
    ended_.Put(job);
  }
}

// Reads pods whose deletion the watch will not report.
void Controller::ReadDoubtfulPods() {
  for (const Pod& pod : pods_.TakeDoubtful()) {
    try {
      Pod there = PodFrom(api_.Get(Pods(), pod.ns, pod.name));
      if (there.uid != pod.uid) pods_.Remove(pod.uid);
      pods_.PutAnswer(std::move(there));
    } catch (const ApiError& error) {
      if (error.is_not_found()) {
        pods_.Remove(pod.uid);
        continue;
      }
      LogWarning("{}", error.what());
      pods_.Doubt(pod.uid);
    }
  }
}

// --- Turns.

void Controller::HandleNodes() {
  std::set<std::string> touched = pods_.TakeChangedNodes();
  touched.merge(inventory_.TakeTouched());
  for (const int node : inventory_.TakeLost()) runner_.NodeLost(node);
  inventory_.Refresh(touched, pods_, [&](const Pod& pod) { return runner_.IsWorker(pod); });
  needs_scheduling_ |= inventory_.TakeChanged();
}

void Controller::HandlePods() {
  for (const std::string& uid : pods_.TakeChangedJobs()) {
    if (LiveGang* live = runner_.FindByUid(uid); live == nullptr || live->workers.empty()) {
      pods_.TakeRemoved(uid);
    } else {
      const size_t workers = live->workers.size();
      const JobId id = live->object.status.id;
      runner_.Check(id);
      const auto at = runner_.live().find(id);
      const bool ended = at == runner_.live().end() || at->second.workers.size() != workers;
      needs_scheduling_ |= ended;
    }
    for (const Pod* pod : pods_.OfJob(uid))
      if (pod->scheduler == kSchedulerName && !pod->deleting && !pod->ended &&
          !runner_.IsWorker(*pod) && !unreadable_.contains(uid))
        runner_.DeleteOrphan(*pod);
  }
}

TimeMs Controller::Turn() {
  if (synced_.size() < kAllSources.size()) return kNever;
  const TimeMs now = snapshot_.now = Now();
  CountUse(now);
  if (!begun_) {
    begun_ = true;
    runner_.SetTerm(++last_term_);
    HandleNodes();
  }
  if (policies_.TakeChanged()) ApplyPolicy();
  if (queues_.TakeChanged()) ApplyQueues();
  pools_.Refresh();
  Reload();
  ReadDoubtfulPods();
  Begin();
  queues_.CountUse(now, snapshot_);
  HandlePods();
  const TimeMs timeout = runner_.CheckTimeouts();
  HandleNodes();
  pools_.Refresh();
  if (inventory_.TakeFiltersChanged() || pools_.TakeChanged()) SpecifyAll();
  needs_scheduling_ |= runner_.TakeChanged();
  AskForRights();
  if (needs_scheduling_ || now >= schedule_at_) Schedule();
  const TimeMs tell_at = TellWaits() ? now + kRetryMs : kNever;
  bool all = runner_.Flush();
  all &= pools_.Flush();
  all &= policies_.Flush(requests_, now);
  all &= queues_.Flush(snapshot_, requests_, now);
  const TimeMs delete_at = ended_.DeleteOld(policies_.current().keep_ended_ms, now, requests_);
  needs_scheduling_ |= runner_.TakeChanged() || pools_.TakeChanged();
  if (!all) return now + kRetryMs;
  // Jobs that could not be bound, or have ended meanwhile, are finished and must be written.
  return needs_scheduling_ || runner_.HasWork()
             ? now
             : std::min({timeout, schedule_at_, tell_at, delete_at, pools_.NextLook(),
                         queues_.NextFlush(), rights_.NextAsk()});
}

void Controller::Schedule() {
  needs_scheduling_ = false;
  ApplyEdits();
  DropUnused();
  ApplyLimits();
  const double begun = clock_.MonotonicSeconds();
  Validated validated =
      Validate(snapshot_, cluster::Schedule(snapshot_, policies_.current().scheduling));
  const Decisions& decisions = validated.decisions;
  counts_.CountCycle(snapshot_, decisions, clock_.MonotonicSeconds() - begun);
  ++cycles_;
  const std::function<record::JobName(JobId)> name_of = [this](JobId id) {
    const auto at = runner_.live().find(id);
    if (at == runner_.live().end()) return record::JobName();
    return record::JobName{at->second.object.ns, at->second.object.name};
  };
  if (options_.on_cycle)
    options_.on_cycle({cycles_, policies_.current().scheduling, snapshot_, decisions, name_of});
  violations_ = validated.violations;
  for (const std::string& violation : violations_) LogError("{}", violation);
  waits_ = decisions.waits;
  schedule_at_ = decisions.look_again;
  runner_.CarryOut(decisions);
  pools_.HasDecided();
}

void Controller::CountUse(TimeMs now) {
  if (const TimeMs since = std::exchange(counted_until_, now); since != 0)
    counts_.CountUse(snapshot_, now - since);
}

bool Controller::TellWaits() {
  const TimeMs now = Now();
  int told = 0;
  for (size_t at = 0; at < waits_.size(); ++at) {
    const Wait& wait = waits_[at];
    const auto live = runner_.live().find(wait.job);
    if (live == runner_.live().end() || !live->second.workers.empty() ||
        HasEnded(live->second.object.status.state))
      continue;
    const std::string reason = ReasonWord(wait.reason);
    const bool is_old = at < kWaitsRefreshed && now - live->second.wait_told_at >= kRefreshMs;
    if (live->second.object.status.reason == reason && !is_old) continue;
    // A status that is written anyway costs nothing extra.
    if (!runner_.WillWrite(wait.job) && ++told > kWaitsTold) return true;
    // How its last attempt ended says more than that there will be another one.
    const std::string& ended_so = live->second.object.status.message;
    const bool keeps = wait.reason == WaitReason::kBackoff && !ended_so.empty();
    runner_.TellWait(wait.job, reason, keeps ? ended_so : WhyItWaits(snapshot_, wait));
  }
  return false;
}

}  // namespace renzan::cluster::kubernetes
