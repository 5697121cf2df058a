#include "renzan/cluster/core/order/fair_share.h"

#include <algorithm>
#include <cmath>

namespace renzan::cluster {
namespace {

constexpr double kLn2 = 0.6931471805599453;

double SecondsOf(TimeMs time) { return static_cast<double>(time) / kSecond; }

int LevelFor(double used, double most) {
  int level = FairShares::kLevels;
  while (level > 1 && used <= most / 2) {
    most /= 2;
    --level;
  }
  return most > 0 ? level : 1;
}

}  // namespace

int KindThatCounts(const Snapshot& snapshot) {
  const auto has_gpus = [](const auto& one) { return one.capacity.gpu() > 0; };
  return std::any_of(snapshot.pools.begin(), snapshot.pools.end(), has_gpus) ||
                 std::any_of(snapshot.nodes.begin(), snapshot.nodes.end(), has_gpus)
             ? kGpu
             : kCpu;
}

double UsePerSecond(const Snapshot& snapshot, const Job& job, int workers, int kind) {
  const auto amount =
      static_cast<double>(snapshot.worker_requests[job.request].per_worker[kind] * workers);
  return kind == kCpu ? amount / 1000 : amount;
}

double Decayed(double seconds, TimeMs passed, TimeMs half_life) {
  return seconds * std::exp2(-SecondsOf(passed) / SecondsOf(half_life));
}

double DecayedUse(double per_second, TimeMs passed, TimeMs half_life) {
  const double mean_life = SecondsOf(half_life) / kLn2;
  return per_second * mean_life * -std::expm1(-SecondsOf(passed) / mean_life);
}

double UsedBy(const FairShare& fair_share, int user) {
  const auto at =
      std::lower_bound(fair_share.used.begin(), fair_share.used.end(), user,
                       [](const UsedLately& used, int wanted) { return used.user < wanted; });
  return at != fair_share.used.end() && at->user == user ? at->seconds : 0;
}

void AdvanceTo(TimeMs now, Snapshot& snapshot) {
  const TimeMs passed = now - snapshot.now;
  snapshot.now = now;
  const auto is_fair = [](const Queue& queue) { return queue.fair_share.has_value(); };
  if (passed <= 0 || std::none_of(snapshot.queues.begin(), snapshot.queues.end(), is_fair)) return;
  const int kind = KindThatCounts(snapshot);
  for (Queue& queue : snapshot.queues)
    if (queue.fair_share)
      for (UsedLately& used : queue.fair_share->used)
        used.seconds = Decayed(used.seconds, passed, queue.fair_share->half_life);
  for (const Job& job : snapshot.jobs) {
    std::optional<FairShare>& fair_share = snapshot.queues[job.queue].fair_share;
    if (!fair_share || job.placement.empty()) continue;
    const auto at =
        std::lower_bound(fair_share->used.begin(), fair_share->used.end(), job.user,
                         [](const UsedLately& used, int wanted) { return used.user < wanted; });
    const bool is_known = at != fair_share->used.end() && at->user == job.user;
    UsedLately& its = is_known ? *at : *fair_share->used.insert(at, {.user = job.user});
    its.seconds += DecayedUse(UsePerSecond(snapshot, job, NumWorkers(job.placement), kind), passed,
                              fair_share->half_life);
  }
}

FairShares::FairShares(const Snapshot& snapshot) : snapshot_(&snapshot) {
  const auto is_fair = [](const Queue& queue) { return queue.fair_share.has_value(); };
  if (std::none_of(snapshot.queues.begin(), snapshot.queues.end(), is_fair)) return;
  const size_t users = snapshot.users.size();
  for (const Queue& queue : snapshot.queues) {
    OfQueue& its = queues_.emplace_back();
    if (!queue.fair_share) continue;
    its.used.resize(users);
    its.levels.resize(users);
    its.has_jobs.resize(users);
    its.mean_life = SecondsOf(queue.fair_share->half_life) / kLn2;
    for (const UsedLately& used : queue.fair_share->used) its.used[used.user] = used.seconds;
  }
  for (const Job& job : snapshot.jobs) {
    OfQueue& its = queues_[job.queue];
    if (its.levels.empty()) continue;
    its.has_jobs[job.user] = true;
    its.most = std::max(its.most, its.used[job.user]);
  }
  for (OfQueue& its : queues_)
    for (size_t user = 0; user < its.levels.size(); ++user)
      its.levels[user] = LevelFor(its.used[user], its.most);
}

// Decay slows all alike, as if their time passed ever more slowly; so first in that time.
TimeMs FairShares::NextChange(const Running& running) const {
  if (!any()) return kNever;
  const int kind = KindThatCounts(*snapshot_);
  std::vector<std::vector<double>> rates(queues_.size());
  for (const auto& [job, workers] : running) {
    if (queues_[job->queue].levels.empty()) continue;
    std::vector<double>& of_queue = rates[job->queue];
    of_queue.resize(snapshot_->users.size());
    of_queue[job->user] += UsePerSecond(*snapshot_, *job, workers, kind);
  }
  double soonest = std::numeric_limits<double>::infinity();
  for (size_t queue = 0; queue < queues_.size(); ++queue) {
    const OfQueue& its = queues_[queue];
    const std::vector<double>& rate = rates[queue];
    if (rate.empty()) continue;
    size_t top = 0;
    while (!its.has_jobs[top] || its.used[top] < its.most) ++top;
    for (size_t user = 0; user < rate.size(); ++user) {
      if (user == top || !its.has_jobs[user]) continue;
      const auto consider = [&](double missing, double per_second) {
        if (per_second <= 0) return;
        const double after = std::max(0.0, missing / per_second);
        soonest = std::min(soonest, 2 * after / (2 + after / its.mean_life));
      };
      double upper = 1;  // its level's bounds, as shares of the most
      for (int level = kLevels; level > its.levels[user]; --level) upper /= 2;
      consider(upper * its.most - its.used[user], rate[user] - upper * rate[top]);
      if (its.levels[user] > 1)
        consider(its.used[user] - upper / 2 * its.most, upper / 2 * rate[top] - rate[user]);
    }
  }
  constexpr double kFar = 1e10;  // seconds
  if (soonest > kFar) return kNever;
  return snapshot_->now + std::max(kSecond, static_cast<TimeMs>(soonest * kSecond) + 1);
}

}  // namespace renzan::cluster
