#include "renzan/cluster/core/order/pending_queue.h"

#include <algorithm>

namespace renzan::cluster {
namespace {

// A job may wait this many times as long as it has run. With less, a cluster with a long backlog
// would serve jobs almost first come, first served.
constexpr int kWaitPerService = 4;

}  // namespace

TimeMs OverdueAt(const Job& job, TimeMs overdue_after) {
  return job.waiting_since + overdue_after +
         kWaitPerService * RankedService(job, ServiceOf(job, job.waiting_since)) + 1;
}

std::vector<Turn> ExchangedTurns(const std::vector<const Job*>& jobs, const Ranks& ranks,
                                 const Snapshot& snapshot) {
  std::vector<Turn> turns;
  turns.reserve(jobs.size());
  for (const Job* job : jobs)
    turns.push_back({ranks.Of(*job).AmongQueues(), static_cast<int>(job - snapshot.jobs.data())});
  std::sort(turns.begin(), turns.end());
  return turns;
}

PendingQueue::PendingQueue(const ClusterView& view, const Quota& quota, const Ranks& ranks,
                           TimeMs overdue_after)
    : snapshot_(view.snapshot()),
      quota_(quota),
      ranks_(ranks),
      taken_(snapshot_.jobs.size()),
      lanes_(quota.guarantees() || ranks.fair_shares().any() ? 2 * snapshot_.queues.size() : 2),
      at_(lanes_.size()) {
  std::vector<JobId> made_room_for;
  for (const int holder : view.holders())
    if (const Job& job = snapshot_.jobs[holder]; job.stopping_for != 0)
      made_room_for.push_back(job.stopping_for);
  std::sort(made_room_for.begin(), made_room_for.end());
  for (const Job& job : snapshot_.jobs) {
    if (job.state != JobState::kPending) continue;
    if (ranks.IsUnbound(job) ||
        std::binary_search(made_room_for.begin(), made_room_for.end(), job.id)) {
      first_.push_back(&job);
      continue;
    }
    const int of_queue = lanes_.size() > 2 ? 2 * job.queue : 0;
    lanes_[of_queue + !ranks.WithinQuota(job)].push_back(&job);
    if (snapshot_.now >= OverdueAt(job, overdue_after)) overdue_.push_back(&job);
  }
  std::stable_sort(first_.begin(), first_.end(), [&](const Job* a, const Job* b) {
    return std::tuple(!ranks.IsUnbound(*a), ranks.Of(*a).right) <
           std::tuple(!ranks.IsUnbound(*b), ranks.Of(*b).right);
  });
  std::stable_sort(overdue_.begin(), overdue_.end(), [&](const Job* a, const Job* b) {
    return std::tuple(ranks.Of(*a).Class(), a->waiting_since) <
           std::tuple(ranks.Of(*b).Class(), b->waiting_since);
  });
  for (std::vector<const Job*>& lane : lanes_) {
    // Jobs come by id, which is the order in which they were submitted.
    const auto before = [&](const Job* a, const Job* b) { return ranks.Outranks(*a, *b); };
    if (!std::is_sorted(lane.begin(), lane.end(), before))
      std::stable_sort(lane.begin(), lane.end(), before);
  }
  if (ranks.fair_shares().any())
    for (const std::vector<const Job*>& lane : lanes_)
      turns_.push_back(ExchangedTurns(lane, ranks, snapshot_));
  EnterAll();
}

Rank PendingQueue::RankOfNext(int lane) const {
  return turns_.empty() ? ranks_.Of(*lanes_[lane][at_[lane]]) : turns_[lane][at_[lane]].rank;
}

PendingQueue::Key PendingQueue::KeyOf(int lane) const {
  const double share = quota_.guarantees() ? quota_.Share(lanes_[lane][at_[lane]]->queue) : 0;
  const bool by_submission = !quota_.guarantees() && !turns_.empty();
  return {RankOfNext(lane), share, by_submission ? turns_[lane][at_[lane]].submitted : 0, lane};
}

void PendingQueue::Enter(int lane) {
  SkipTaken(lane);
  if (at_[lane] < lanes_[lane].size()) heads_.insert(KeyOf(lane));
}

void PendingQueue::EnterAll() {
  heads_.clear();
  last_ = -1;
  same_.reset();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) Enter(static_cast<int>(lane));
}

void PendingQueue::SkipTaken(int lane) {
  while (at_[lane] < lanes_[lane].size() && taken_[lanes_[lane][at_[lane]] - snapshot_.jobs.data()])
    ++at_[lane];
}

void PendingQueue::Served() {
  if (last_is_overdue_) overdue_at_ = overdue_.size();
}

const Job* PendingQueue::Fetch(int lane) {
  last_ = lane;
  const Job* job = lanes_[lane][at_[lane]++];
  SkipTaken(lane);
  return job;
}

bool PendingQueue::SameKeyAsLast() const {
  if (!same_ || same_->second != quota_.version()) return false;
  if (!quota_.guarantees() && !turns_.empty())
    return false;  // another lane's was submitted earlier
  return RankOfNext(last_) == std::get<Rank>(same_->first);
}

// The longest overdue job, if no job of a higher class is left.
const Job* PendingQueue::NextOverdue() {
  if (overdue_at_ == overdue_.size()) return nullptr;
  const Job& job = *overdue_[overdue_at_];
  const auto its = ranks_.Of(job).Class();
  if (!heads_.empty() && std::get<Rank>(*heads_.begin()).Class() < its) return nullptr;
  if (last_ >= 0 && at_[last_] < lanes_[last_].size() &&
      ranks_.Of(*lanes_[last_][at_[last_]]).Class() < its)
    return nullptr;
  ++overdue_at_;
  taken_[&job - snapshot_.jobs.data()] = true;
  return &job;
}

const Job* PendingQueue::Next() {
  if (first_at_ < first_.size()) return first_[first_at_++];
  // Starts from first_ and of overdue jobs change the lanes' keys; those jobs are few.
  if ((first_at_ == first_.size() && first_at_ > 0) || last_is_overdue_) {
    first_at_ = first_.size() + 1;
    EnterAll();
  }
  const Job* overdue = NextOverdue();
  last_is_overdue_ = overdue != nullptr;
  return overdue != nullptr ? overdue : NextOfLanes();
}

const Job* PendingQueue::NextOfLanes() {
  if (last_ >= 0 && at_[last_] < lanes_[last_].size()) {
    // Usually nothing has started since, and this lane is still first.
    if (SameKeyAsLast()) return Fetch(last_);
    const Key key = KeyOf(last_);
    same_ = {key, quota_.version()};
    if (heads_.empty() || key < *heads_.begin()) return Fetch(last_);
    heads_.insert(key);
    same_.reset();
  }
  if (heads_.empty()) return nullptr;
  const int lane = std::get<3>(*heads_.begin());
  heads_.erase(heads_.begin());
  same_.reset();
  return Fetch(lane);
}

}  // namespace renzan::cluster
