#include "renzan/cluster/local/controller/controller.h"

#include <algorithm>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/accounting.h"

namespace renzan::cluster::local {
namespace {

constexpr TimeMs kRetryMs = 1000;  // after an error of the disk

}  // namespace

Controller::Controller(ControllerOptions options, Snapshot cluster, Store& store, Agent& agent,
                       const Clock& clock)
    : options_(std::move(options)),
      access_(options_.uid, options_.limits),
      directories_(options_.state_dir),
      state_{.snapshot = std::move(cluster)},
      store_(store),
      agent_(agent),
      clock_(clock),
      pools_(state_.snapshot, store, clock),
      usage_(state_.snapshot, store, clock),
      log_(state_, store, usage_, pools_, clock),
      collector_(options_.artifacts_timeout_ms, log_, store, agent, directories_, state_.watched,
                 clock),
      retention_(options_.retention, store, agent, directories_, state_.watched),
      progress_(state_, store, agent, directories_, clock),
      nodes_(state_, store, pools_, clock) {}

std::vector<const JobRecord*> Controller::Unfinished() const {
  std::vector<const JobRecord*> jobs = collector_.Jobs();
  for (const auto& [id, live] : state_.live) jobs.push_back(&live.record);
  return jobs;
}

std::map<QueueAndUser, UsageRecord> Controller::UsageUntilNow() const {
  return usage_.Sums(Unfinished());
}

TimeMs Controller::Now() const { return NowMs(clock_); }

TimeMs Controller::Turn() {
  if (store_.corruption()) throw *store_.corruption();
  const TimeMs now = Now();
  if (now < last_turn_) ClockWentBack(now);
  last_turn_ = state_.snapshot.now = now;
  try {
    if (now >= state_.retry_at) state_.retry_at = kNever;
    AdvanceNodes();
    FinishEnded();
    collector_.Advance();
    retention_.Advance(now);
    if (state_.needs_scheduling || now >= look_again_) Decide();
  } catch (const Error& error) {
    if (store_.corruption()) throw;
    LogError("{}; trying again in {} s", error.what(), kRetryMs / 1000);
    state_.needs_scheduling = true;
    state_.retry_at = now + kRetryMs;
  }
  const TimeMs next_checkpoint = progress_.AwaitCheckpoints();
  if (state_.retry_at != kNever) return state_.retry_at;
  return state_.needs_scheduling
             ? now
             : std::min({look_again_, nodes_.NextEvent(), collector_.NextDeadline(),
                         retention_.next_look(), next_checkpoint});
}

// What lies further ahead than it can by right would be waited for until the clock is there again.
void Controller::ClockWentBack(TimeMs now) {
  LogWarning("the clock went back by {} s", static_cast<double>(last_turn_ - now) / 1000);
  state_.retry_at = kNever;
  look_again_ = now;
  retention_.ClockWentBack(now);
  usage_.ClockWentBack(now);
  pools_.ClockWentBack(now);
  collector_.ClockWentBack(now);
  progress_.ClockWentBack();
  for (Job& job : state_.snapshot.jobs) {
    job.started = std::min(job.started, now);
    job.last_resize = std::min(job.last_resize, now);
    job.eligible_at = std::min(job.eligible_at, now + kLongestBackoffMs);
  }
  for (Node& node : state_.snapshot.nodes) {
    node.idle_since = std::min(node.idle_since, now);
    if (node.state == NodeState::kBooting)
      node.until = std::min(node.until, now + state_.snapshot.pools[node.pool].boot_ms);
  }
}

LiveJob& Controller::LiveNamed(JobId job) {
  const auto at = state_.live.find(job);
  if (at != state_.live.end()) return at->second;
  const auto record = store_.FindJob(job);
  if (!record) Fail(ErrorCode::kNoInput, "there is no job {}: `renzan jobs --all` lists them", job);
  Fail(ErrorCode::kUsage, "job {} has ended already ({})", job, NameOf(record->state));
}

NamedPlacement Controller::Named(const Placement& placement) const {
  NamedPlacement named;
  for (const Placed& placed : placement)
    named.push_back({.node = state_.snapshot.nodes[placed.node].name, .workers = placed.workers});
  return named;
}

}  // namespace renzan::cluster::local
