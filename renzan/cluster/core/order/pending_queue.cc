#include "renzan/cluster/core/order/pending_queue.h"

#include <algorithm>

namespace renzan::cluster {

PendingQueue::PendingQueue(const ClusterView& view, const Quota& quota,
                           const Entitlement& entitlement, TimeMs overdue_after)
    : snapshot_(view.snapshot()),
      quota_(quota),
      entitlement_(entitlement),
      overdue_after_(overdue_after),
      lanes_(2 * snapshot_.queues.size()),
      at_(lanes_.size()) {
  std::vector<JobId> made_room_for;
  for (const int holder : view.holders())
    if (const Job& job = snapshot_.jobs[holder]; job.stopping_for != 0)
      made_room_for.push_back(job.stopping_for);
  std::sort(made_room_for.begin(), made_room_for.end());
  for (const Job& job : snapshot_.jobs) {
    if (job.state != JobState::kPending) continue;
    if (job.grand_challenge ||
        std::binary_search(made_room_for.begin(), made_room_for.end(), job.id))
      first_.push_back(&job);
    else
      lanes_[2 * job.queue + !entitlement.WithinQuota(job)].push_back(&job);
  }
  std::stable_sort(first_.begin(), first_.end(), [](const Job* a, const Job* b) {
    return std::tuple(!a->grand_challenge, -a->priority) <
           std::tuple(!b->grand_challenge, -b->priority);
  });
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    // Jobs come by id, which is the order in which they were submitted.
    const auto higher = [](const Job* a, const Job* b) { return a->priority > b->priority; };
    if (!std::is_sorted(lanes_[lane].begin(), lanes_[lane].end(), higher))
      std::stable_sort(lanes_[lane].begin(), lanes_[lane].end(), higher);
  }
  EnterAll();
}

bool PendingQueue::Overdue(const Job& job) const {
  return !overdue_served_ && snapshot_.now - job.waiting_since > overdue_after_;
}

PendingQueue::Key PendingQueue::KeyOf(int lane) const {
  const Job& head = *lanes_[lane][at_[lane]];
  const bool overdue = Overdue(head);
  return {!entitlement_.WithinQuota(head), -head.priority, !overdue,
          overdue ? static_cast<double>(head.waiting_since) : quota_.Share(head.queue), lane};
}

void PendingQueue::Enter(int lane) {
  if (at_[lane] < lanes_[lane].size()) heads_.insert(KeyOf(lane));
}

void PendingQueue::EnterAll() {
  heads_.clear();
  last_ = -1;
  same_.reset();
  for (size_t lane = 0; lane < lanes_.size(); ++lane) Enter(static_cast<int>(lane));
}

void PendingQueue::Served() {
  if (last_ < 0 || !Overdue(*lanes_[last_][at_[last_] - 1])) return;
  overdue_served_ = true;
  EnterAll();
}

const Job* PendingQueue::Fetch(int lane) {
  last_ = lane;
  return lanes_[lane][at_[lane]++];
}

bool PendingQueue::SameKeyAsLast() const {
  if (!same_ || same_->second != quota_.version()) return false;
  const Job& head = *lanes_[last_][at_[last_]];
  return -head.priority == std::get<1>(same_->first) && !Overdue(head) &&
         std::get<2>(same_->first) && entitlement_.WithinQuota(head) == !std::get<0>(same_->first);
}

const Job* PendingQueue::Next() {
  if (first_at_ < first_.size()) return first_[first_at_++];
  // Starts from first_ change the lanes' keys; those jobs are few, so all keys are rebuilt once.
  if (first_at_ == first_.size() && first_at_ > 0) {
    ++first_at_;
    EnterAll();
  }
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
  const int lane = std::get<4>(*heads_.begin());
  heads_.erase(heads_.begin());
  same_.reset();
  return Fetch(lane);
}

}  // namespace renzan::cluster
