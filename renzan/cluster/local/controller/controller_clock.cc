// Controller, when the clock is set forward or back.

#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {

void Controller::CheckClock(TimeMs now) {
  // Clocks that follow a time server run a little faster or slower.
  constexpr TimeMs kLeastJumpMs = 5'000, kPerSlew = 1'000;
  const double steady = clock_.MonotonicSeconds();
  const auto passed = std::max<TimeMs>(0, static_cast<TimeMs>((steady - clock_checked_at_) * 1000));
  const TimeMs by = now - clock_checked_ - passed;
  clock_checked_ = now;
  clock_checked_at_ = steady;
  if (by > kLeastJumpMs + passed / kPerSlew) ClockJumped(by);
}

// Otherwise jobs would be charged, and run times be learned, for time in which nothing ran: the
// clock was wrong, or the machine was suspended.
void Controller::ClockJumped(TimeMs by) {
  LogWarning("the clock jumped forward by {} s, which counts for no job",
             static_cast<double>(by) / 1000);
  usage_.ClockJumped(by);
  retention_.ClockJumped(by, Now());
  pools_.ClockJumped(by);
  for (Job& job : state_.snapshot.jobs) {
    if (job.state == JobState::kPending) {
      job.waiting_since += by;
      continue;
    }
    job.started += by;
    job.last_resize += by;
    if (job.last_checkpoint) *job.last_checkpoint += by;
    state_.live.at(job.id).record.attempt->started += by;
  }
  try {
    const TimeMs until = usage_.Until(Now());
    store_.Transact([&] {
      usage_.Put(until);
      for (const auto& [id, live] : state_.live)
        if (live.record.attempt) store_.Put(live.record);
    });
    usage_.Committed(until);
  } catch (const Error& error) {
    LogWarning("{}", error.what());  // stored with the end of each
  }
}

// Otherwise times in the future would be waited for until the clock reaches them again.
void Controller::ClockWentBack(TimeMs now) {
  LogWarning("the clock went back by {} s", static_cast<double>(last_turn_ - now) / 1000);
  state_.retry_at = kNever;
  schedule_at_ = now;
  retention_.ClockWentBack(now);
  usage_.ClockWentBack(now);
  pools_.ClockWentBack(now);
  collector_.ClockWentBack(now);
  checker_.ClockWentBack(now);
  progress_.ClockWentBack();
  Snapshot& snapshot = state_.snapshot;
  for (Job& job : snapshot.jobs) {
    job.started = std::min(job.started, now);
    job.last_resize = std::min(job.last_resize, now);
    job.waiting_since = std::min(job.waiting_since, now);
    job.eligible_at = std::min(job.eligible_at, now + kLongestBackoffMs);
  }
  for (User& user : snapshot.users)
    for (FailingNode& failing : user.failing_on) {
      failing.since = std::min(failing.since, now);
      failing.latest = std::min(failing.latest, now);
    }
  for (Node& node : snapshot.nodes) {
    node.idle_since = std::min(node.idle_since, now);
    if (node.state == NodeState::kBooting)
      node.until = std::min(node.until, now + snapshot.pools[node.pool].boot_ms);
    if (node.state == NodeState::kCordoned && node.until != kNever)
      node.until = std::min(node.until, now + options_.node_health.suspect_for_ms());
  }
}

}  // namespace renzan::cluster::local
