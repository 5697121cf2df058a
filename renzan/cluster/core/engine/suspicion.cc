#include "renzan/cluster/core/engine/suspicion.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "renzan/base/counted.h"

namespace renzan::cluster {
namespace {

// The time of a failure that was held against the node until it was absolved.
constexpr TimeMs kAbsolved = 0;
// Failures that are older count no more.
constexpr TimeMs kEvidenceMs = kHour;
// Jobs that started so long before another failed can still be compared with it.
constexpr TimeMs kTogetherMs = kMinute;

}  // namespace

void Suspicion::Restore(const EarlyFailure& failure) {
  failures_.insert_or_assign({failure.job, failure.node}, failure);
}

std::vector<EarlyFailure> Suspicion::Failed(EarlyFailure failure) {
  std::vector<EarlyFailure> changed;
  for (auto at = failures_.lower_bound({failure.job, ""});
       at != failures_.end() && at->first.first == failure.job; ++at) {
    EarlyFailure& other = at->second;
    if (other.node == failure.node) continue;
    failure.counts = false;
    if (!other.counts) continue;
    other.counts = false;
    changed.push_back(other);
  }
  Restore(failure);
  changed.push_back(failure);
  return changed;
}

std::vector<EarlyFailure> Suspicion::RanWell(JobId job, const std::vector<std::string>& nodes,
                                             TimeMs started) {
  std::vector<EarlyFailure> changed;
  for (auto& [key, failure] : failures_) {
    if (failure.time == kAbsolved) continue;
    const EarlyFailure before = failure;
    if (std::ranges::find(nodes, failure.node) != nodes.end()) {
      // A job that was running already does not show that new ones can start there.
      if (failure.time <= started) failure.counts &= failure.ran_elsewhere;
    } else if (failure.job == job) {
      failure.counts = failure.ran_elsewhere = true;
    }
    if (failure != before) changed.push_back(failure);
  }
  return changed;
}

std::vector<EarlyFailure> Suspicion::Absolve(const std::string& node) {
  std::vector<EarlyFailure> changed;
  for (auto& [key, failure] : failures_) {
    if (failure.node != node || failure.time == kAbsolved) continue;
    failure.counts = failure.ran_elsewhere = false;
    failure.time = kAbsolved;
    changed.push_back(failure);
  }
  return changed;
}

void Suspicion::ForgetNode(const std::string& node) {
  std::erase_if(failures_, [&](const auto& each) { return each.second.node == node; });
}

void Suspicion::ForgetJob(JobId job) {
  std::erase_if(failures_, [&](const auto& each) { return each.second.job == job; });
}

void Suspicion::Survived(JobId job, const std::string& user, const std::string& node,
                         TimeMs started) {
  survivors_[{job, node}] = {user, started};
  std::erase_if(survivors_,
                [&](const auto& each) { return each.second.started < started - kEvidenceMs; });
}

// How many jobs of the user that started since then survived on other nodes; 0 if any job did on
// this one, or if some of the user failed elsewhere, too.
int Suspicion::SurvivorsBeside(const std::string& node, const std::string& user,
                               TimeMs since) const {
  for (const auto& [key, failure] : failures_)
    if (failure.user == user && failure.node != node && failure.time >= since) return 0;
  std::set<JobId> jobs;
  for (const auto& [key, survivor] : survivors_) {
    if (survivor.started < since) continue;
    if (key.second == node) return 0;
    if (survivor.user == user) jobs.insert(key.first);
  }
  return static_cast<int>(jobs.size());
}

std::string Suspicion::WhySuspected(const std::string& node, TimeMs now) const {
  int jobs = 0, confirmed = 0;
  std::map<std::string, std::vector<TimeMs>> users;
  for (const auto& [key, failure] : failures_) {
    if (failure.node != node || !failure.counts || failure.time < now - kEvidenceMs) continue;
    ++jobs;
    confirmed += failure.ran_elsewhere;
    users[failure.user].push_back(failure.time);
  }
  if (confirmed >= jobs_)
    return Counted(confirmed, "job") +
           " failed there soon after their start, and then ran elsewhere";
  if (jobs >= jobs_ && users.size() >= 2)
    return fmt::format("{} of {} failed there soon after their start", Counted(jobs, "job"),
                       Counted(std::ssize(users), "user"));
  for (const auto& [user, times] : users) {
    const TimeMs since = *std::ranges::min_element(times) - kTogetherMs;
    if (static_cast<int>(times.size()) < jobs_) continue;
    if (const int others = SurvivorsBeside(node, user, since); others >= jobs_)
      return fmt::format(
          "{} of user {} failed there soon after their start, while {} ran elsewhere",
          Counted(std::ssize(times), "job"), user, Counted(others, "other job"));
  }
  return "";
}

// Whether it failed on several nodes and has not run well since.
bool Suspicion::IsJobsOwnFault(const EarlyFailure& failure) const {
  if (failure.ran_elsewhere) return false;
  const auto first = failures_.lower_bound({failure.job, ""});
  const auto second = std::next(first);
  return second != failures_.end() && second->first.first == failure.job;
}

std::vector<FailingNode> Suspicion::FailingFor(const std::string& user, TimeMs now) const {
  std::map<std::string, TimeMs> survived;  // by node: when the last job that survived started
  for (const auto& [key, survivor] : survivors_) {
    if (survivor.user != user) continue;
    TimeMs& last = survived[key.second];
    last = std::max(last, survivor.started);
  }
  std::map<std::string, std::vector<TimeMs>> failed;  // by node
  for (const auto& [key, failure] : failures_) {
    if (failure.user != user || failure.time == kAbsolved || failure.time < now - kEvidenceMs)
      continue;
    const TimeMs started = failure.started == 0 ? failure.time : failure.started;
    const auto survivor = survived.find(failure.node);
    if (survivor != survived.end() && survivor->second >= started) continue;
    if (!IsJobsOwnFault(failure)) failed[failure.node].push_back(std::min(failure.time, now));
  }
  std::vector<FailingNode> failing;
  for (auto& [node, times] : failed) {
    if (std::ssize(times) < jobs_) continue;
    std::ranges::sort(times);
    failing.push_back({.node = node,
                       .jobs = static_cast<int>(times.size()),
                       .since = times[times.size() - static_cast<size_t>(jobs_)],
                       .latest = times.back()});
  }
  return failing;
}

bool Suspicion::Knows(JobId job) const {
  const auto at = failures_.lower_bound({job, ""});
  return at != failures_.end() && at->first.first == job;
}

std::vector<JobId> Suspicion::OldJobs(TimeMs now) const {
  std::map<JobId, TimeMs> last;
  for (const auto& [key, failure] : failures_) {
    TimeMs& time = last[failure.job];
    time = std::max(time, failure.time);
  }
  std::vector<JobId> old;
  for (const auto& [job, time] : last)
    if (time < now - kEvidenceMs) old.push_back(job);
  return old;
}

}  // namespace renzan::cluster
