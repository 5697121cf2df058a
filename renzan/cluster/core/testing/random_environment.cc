#include "renzan/cluster/core/testing/random_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {
namespace {

constexpr int kMaxCyclesAtOnce = 20;

std::string Describe(const Placement& placement) {
  std::string text;
  for (const Placed& placed : placement) text += fmt::format(" {}x{}", placed.node, placed.workers);
  return text;
}

}  // namespace

std::string Describe(const Decisions& decisions) {
  std::string text;
  for (const Start& start : decisions.starts)
    text += fmt::format("start {}{}{}\n", start.job, Describe(start.placement),
                        start.backfill ? " backfill" : "");
  for (const Stop& stop : decisions.stops)
    text += fmt::format("stop {} {} for {}\n", stop.job, NameOf(stop.reason), stop.on_behalf_of);
  for (const Resize& resize : decisions.resizes)
    text += fmt::format("resize {}{} for {}\n", resize.job, Describe(resize.target),
                        resize.on_behalf_of);
  for (const JobId job : decisions.checkpoints) text += fmt::format("checkpoint {}\n", job);
  for (const ScaleOut& out : decisions.scale_out)
    text += fmt::format("scale out {} by {}\n", out.pool, out.nodes);
  for (const ScaleIn& in : decisions.scale_in) text += fmt::format("scale in {}\n", in.node);
  for (const Reservation& reservation : decisions.reservations)
    text += fmt::format("reserve {}{}\n", reservation.job, Describe(reservation.placement));
  for (const Wait& wait : decisions.waits)
    text += fmt::format("wait {} {} {}\n", wait.job, NameOf(wait.reason), wait.blocked_by);
  return text + fmt::format("look again {}\n", decisions.look_again);
}

RandomEnvironment::RandomEnvironment(uint64_t seed, Policy policy)
    : draws_(seed), policy_(std::move(policy)), snapshot_(RandomCluster(draws_)) {
  if (draws_.Chance(0.5)) snapshot_.budget_per_hour = static_cast<double>(draws_.Between(0, 60));
  if (Draws tree(~seed - 1); tree.Chance(0.4)) AddParents(tree, snapshot_);
  if (Draws fair(~seed); fair.Chance(0.5)) AddFairShare(fair, snapshot_);
  const int64_t jobs = draws_.Between(1, 20);
  for (int64_t job = 0; job < jobs; ++job) Submit();
}

void RandomEnvironment::Report(const std::string& violation) {
  if (violations_.size() < 20)
    violations_.push_back(fmt::format("cycle {}, time {}: {}", cycles_, snapshot_.now, violation));
}

void RandomEnvironment::Submit() {
  const JobId id = next_job_++;
  snapshot_.jobs.push_back(RandomJob(draws_, snapshot_, id));
  Work& work = work_[id];
  work.total = work.left = draws_.Between(1, 120) * kMinute;
}

TimeMs RandomEnvironment::Decide() {
  for (int cycle = 0; cycle < kMaxCyclesAtOnce; ++cycle) {
    ++cycles_;
    for (const std::string& wrong : ValidateSnapshot(snapshot_)) Report("snapshot: " + wrong);
    const Decisions decisions = policy_(snapshot_);
    for (const std::string& wrong : ValidateDecisions(snapshot_, decisions)) Report(wrong);
    if (Describe(decisions) != Describe(policy_(snapshot_)))
      Report("the same snapshot gives other decisions");
    if (!violations_.empty()) return kNever;  // invalid decisions are not carried out
    const bool changed = CarryOut(decisions, snapshot_, *this) || !decisions.checkpoints.empty();
    if (!changed) return decisions.look_again;
  }
  Report(fmt::format("still deciding after {} cycles at the same moment", kMaxCyclesAtOnce));
  return kNever;
}

void RandomEnvironment::TellToLeave(JobId id) {
  work_[id].leaves_at = snapshot_.now + draws_.Between(1, snapshot_.Find(id)->grace_ms);
}

void RandomEnvironment::Perform(const Stop& stop) {
  ++stops_;
  TellToLeave(stop.job);
}

void RandomEnvironment::Perform(const Resize& resize) {
  ++resizes_;
  TellToLeave(resize.job);
}

void RandomEnvironment::Perform(const CheckpointRequest& request) {
  snapshot_.Find(request.job)->last_checkpoint = snapshot_.now;
}

void RandomEnvironment::Vacate(const Job& job) {
  for (const Placed& placed : job.placement)
    snapshot_.nodes[placed.node].idle_since = snapshot_.now;
}

void RandomEnvironment::Requeue(Job& job) {
  Work& work = work_[job.id];
  if (!job.checkpoints) work.left = work.total;
  work.leaves_at = kNever;
  Vacate(job);
  RequeueGang(job, snapshot_.now);
  if (draws_.Chance(0.1)) job.eligible_at = snapshot_.now + draws_.Between(1, 60'000);
}

// The stop is complete; a resizing job restarts on its target.
void RandomEnvironment::Leave(Job& job) {
  if (job.state == JobState::kStopping) return Requeue(job);
  Vacate(job);
  work_[job.id].leaves_at = kNever;
  RestartGang(job, snapshot_.now);
}

void RandomEnvironment::FailNode(int node) {
  snapshot_.nodes[node].state = NodeState::kGone;
  for (Job& job : snapshot_.jobs) {
    if (IsOn(job.placement, node)) {
      Requeue(job);
    } else if (IsOn(job.target, node)) {
      EvictGang(job);
    }
  }
}

void RandomEnvironment::DisturbNode() {
  const int node =
      static_cast<int>(draws_.Between(0, static_cast<int64_t>(snapshot_.nodes.size()) - 1));
  Node& one = snapshot_.nodes[node];
  const bool scaled = snapshot_.pools[one.pool].min_nodes < snapshot_.pools[one.pool].max_nodes;
  if (one.state == NodeState::kGone && !scaled) {
    one.state = NodeState::kReady;
    one.idle_since = snapshot_.now;
  } else if (one.state == NodeState::kCordoned ||
             (one.state == NodeState::kDraining && one.until == kNever)) {
    one.state = NodeState::kReady;
  } else if (one.state == NodeState::kReady && draws_.Chance(0.2)) {
    one.state = NodeState::kCordoned;
  } else if (one.state == NodeState::kReady && draws_.Chance(0.5)) {
    one.state = NodeState::kDraining;
    one.until = one.spot || scaled ? snapshot_.now + 120'000 : kNever;
  } else if (one.state == NodeState::kReady && draws_.Chance(0.5)) {
    FailNode(node);
  }
}

void RandomEnvironment::FinishJob(size_t index) {
  Vacate(snapshot_.jobs[index]);
  work_.erase(snapshot_.jobs[index].id);
  snapshot_.jobs.erase(snapshot_.jobs.begin() + static_cast<std::ptrdiff_t>(index));
}

void RandomEnvironment::EndJobsThatAreDone() {
  for (size_t index = snapshot_.jobs.size(); index-- > 0;)
    if (snapshot_.jobs[index].state == JobState::kRunning &&
        work_[snapshot_.jobs[index].id].left <= 0)
      FinishJob(index);
}

void RandomEnvironment::Progress(TimeMs by) {
  AdvanceTo(snapshot_.now + by, snapshot_);
  if (!jobs_end_) return;
  for (const Job& job : snapshot_.jobs)
    if (job.state == JobState::kRunning) work_[job.id].left -= by;
  EndJobsThatAreDone();
}

TimeMs RandomEnvironment::NextEvent() const {
  TimeMs next = kNever;
  const auto consider = [&](TimeMs at) {
    if (at > snapshot_.now) next = std::min(next, at);
  };
  for (const Job& job : snapshot_.jobs) {
    const Work& work = work_.at(job.id);
    if (work.leaves_at != kNever) consider(std::max(work.leaves_at, snapshot_.now + 1));
    if (job.state == JobState::kRunning && jobs_end_) consider(snapshot_.now + work.left);
  }
  for (const Node& node : snapshot_.nodes)
    if (node.until != kNever &&
        (node.state == NodeState::kBooting || node.state == NodeState::kDraining))
      consider(std::max(node.until, snapshot_.now + 1));
  return next;
}

void RandomEnvironment::UpdateNodes() {
  for (size_t index = 0; index < snapshot_.nodes.size(); ++index) {
    Node& node = snapshot_.nodes[index];
    if (node.until > snapshot_.now) continue;
    if (node.state == NodeState::kDraining) {
      FailNode(static_cast<int>(index));
    } else if (node.state == NodeState::kBooting) {
      node.state = NodeState::kReady;
      node.until = kNever;
      node.idle_since = snapshot_.now;
    }
  }
}

void RandomEnvironment::Advance(TimeMs until) {
  const TimeMs next = std::min(until, NextEvent());
  CHECK(next != kNever);
  Progress(next - snapshot_.now);
  for (Job& job : snapshot_.jobs)
    if (work_.at(job.id).leaves_at <= snapshot_.now) Leave(job);
  UpdateNodes();
}

void RandomEnvironment::Disturb() {
  if (!violations_.empty()) return;
  const int64_t events = draws_.Between(1, 3);
  for (int64_t event = 0; event < events; ++event) {
    if (snapshot_.jobs.size() < 60 && draws_.Chance(0.5)) Submit();
    if (draws_.Chance(0.15)) DisturbNode();
    if (draws_.Chance(0.03) && !snapshot_.jobs.empty()) {
      const size_t index = draws_.Between(0, static_cast<int64_t>(snapshot_.jobs.size()) - 1);
      if (snapshot_.jobs[index].state != JobState::kResizing) FinishJob(index);  // cancelled
    }
    Decide();
  }
  const TimeMs until = snapshot_.now + draws_.Between(1, 15) * kMinute;
  while (snapshot_.now < until && violations_.empty()) {
    Advance(until);
    Decide();
  }
}

void RandomEnvironment::Settle() {
  if (!violations_.empty()) return;
  jobs_end_ = false;
  constexpr TimeMs kDay = 24 * 60 * kMinute;
  TimeMs until = snapshot_.now + 3 * kDay;
  // Jobs that have run for days become overdue later, and reservations end later: each once.
  int late_changes = 10;
  const int before = stops_ + resizes_;
  TimeMs last_change = snapshot_.now, look_again = Decide();
  while (snapshot_.now < until && violations_.empty()) {
    Advance(std::min(until, std::max(look_again, snapshot_.now + 1)));
    const int so_far = stops_ + resizes_;
    look_again = Decide();
    if (stops_ + resizes_ == so_far) continue;
    last_change = snapshot_.now;
    if (last_change > until - kDay / 2 && late_changes-- > 0) until = last_change + kDay;
  }
  if (last_change > until - kDay / 2)
    Report(fmt::format("{} stops and resizes without external events, and they do not cease",
                       stops_ + resizes_ - before));
  jobs_end_ = true;
  EndJobsThatAreDone();
}

bool RandomEnvironment::CanEverRun(const Job& job) const {
  return WhyInfeasible(snapshot_, job).empty();
}

void RandomEnvironment::Finish() {
  if (!violations_.empty()) return;
  snapshot_.budget_per_hour = std::numeric_limits<double>::infinity();
  for (size_t index = 0; index < snapshot_.nodes.size(); ++index) {
    Node& node = snapshot_.nodes[index];
    const Pool& pool = snapshot_.pools[node.pool];
    const bool own = pool.min_nodes == pool.max_nodes;
    const bool comes_back =
        node.state == NodeState::kCordoned ||
        (own && (node.state == NodeState::kGone || node.state == NodeState::kDraining));
    if (!comes_back) continue;
    node.state = NodeState::kReady;
    node.until = kNever;
    node.idle_since = snapshot_.now;
  }
  TimeMs look_again = Decide();
  for (int step = 0; step < 20'000 && violations_.empty(); ++step) {
    const bool anyone = std::any_of(snapshot_.jobs.begin(), snapshot_.jobs.end(),
                                    [&](const Job& job) { return CanEverRun(job); });
    if (!anyone) return;
    if (look_again == kNever && NextEvent() == kNever) break;
    Advance(std::max(look_again, snapshot_.now + 1));
    look_again = Decide();
  }
  for (const Job& job : snapshot_.jobs)
    if (violations_.empty() && CanEverRun(job)) Report(fmt::format("job {} never ends", job.id));
}

}  // namespace renzan::cluster
