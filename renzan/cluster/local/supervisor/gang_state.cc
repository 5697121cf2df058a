#include "renzan/cluster/local/supervisor/gang_state.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>

#include "renzan/base/error.h"
#include "renzan/base/process/process_end.h"
#include "renzan/cluster/core/engine/outcome.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::local {
namespace {

// For workers that lost a peer: time to report it and to finish a checkpoint.
constexpr double kFailureGraceSeconds = 5;
constexpr double kForever = std::numeric_limits<double>::infinity();

}  // namespace

GangState::GangState(const AttemptPlan& plan, double now)
    : plan_(plan), began_(now), timeout_at_(kForever), workers_(plan.workers.size()) {
  TimeLimitChanged(plan.timeout_ms);
}

void GangState::TimeLimitChanged(int64_t timeout_ms) {
  if (kill_at_) return;
  plan_.timeout_ms = timeout_ms;
  timeout_at_ = timeout_ms > 0 ? began_ + static_cast<double>(timeout_ms) / 1000 : kForever;
}

double GangState::FailureGrace() const {
  return std::min(kFailureGraceSeconds, plan_.grace_seconds);
}

bool GangState::AnyRunning() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.running; });
}

void GangState::BeginToEnd(EndedBy by, double grace_seconds, double now) {
  const double kill_at = now + std::max(grace_seconds, 0.0);
  if (kill_at_) {
    if (kill_at >= *kill_at_) return;
  } else {
    by_ = by;
    terminated_at_ = now;
  }
  kill_at_ = kill_at;
}

void GangState::WorkersEnded(std::vector<Exit> exits, double now) {
  std::stable_sort(exits.begin(), exits.end(), [](const Exit& a, const Exit& b) {
    return Severity(a.exit_code) > Severity(b.exit_code);
  });
  for (const Exit& exit : exits) {
    Worker& worker = workers_.at(static_cast<size_t>(exit.rank));
    worker.running = false;
    worker.end = {.exit_code = exit.exit_code, .signal = exit.signal};
    // It may have ended before the signal, but the gang is being ended because of it anyway.
    if (worker.too_much_mib > 0) worker.end = {.exit_code = 128 + SIGKILL, .signal = SIGKILL};
    if (exit.exit_code != 0 && !first_failed_) first_failed_ = exit.rank;
  }
  if (first_failed_ && !kill_at_ && AnyRunning())
    BeginToEnd(EndedBy::kWorkerFailed, FailureGrace(), now);
}

void GangState::StopRequested(double grace_seconds, double now) {
  if (AnyRunning()) BeginToEnd(EndedBy::kRequest, grace_seconds, now);
}

void GangState::NodeFailed(const std::string& node, double now) {
  bool hit = false;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    if (plan_.workers[rank].node != node || !workers_[rank].running) continue;
    hit = true;
    workers_[rank].node_failed = true;
    if (!first_failed_) first_failed_ = static_cast<int>(rank);
  }
  if (!hit) return;
  if (failed_node_.empty()) failed_node_ = node;
  if (by_ == EndedBy::kRequest) by_ = EndedBy::kNodeFailed;
  BeginToEnd(EndedBy::kNodeFailed, FailureGrace(), now);
}

void GangState::MemoryExceeded(int rank, int64_t used_mib, double now) {
  Worker& worker = workers_.at(static_cast<size_t>(rank));
  if (!worker.running || worker.killed || worker.too_much_mib > 0) return;
  worker.too_much_mib = used_mib;
  if (!first_failed_) first_failed_ = rank;
  if (!kill_at_) BeginToEnd(EndedBy::kWorkerFailed, FailureGrace(), now);
}

// At once, even while it is stopping: it may be filling the disk, and would have no room to save
// its work.
void GangState::DiskExceeded(int64_t used_mib, double now) {
  if (too_much_disk_mib_ > 0 || !AnyRunning()) return;
  too_much_disk_mib_ = used_mib;
  BeginToEnd(EndedBy::kWorkerFailed, 0, now);
}

std::vector<GangState::Signal> GangState::Step(double now) {
  if (!kill_at_ && now >= timeout_at_) BeginToEnd(EndedBy::kTimeout, plan_.grace_seconds, now);
  std::vector<Signal> signals;
  if (!kill_at_) return signals;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    Worker& worker = workers_[rank];
    if (!worker.running || worker.killed) continue;
    const bool kill_now = worker.node_failed || worker.too_much_mib > 0 || too_much_disk_mib_ > 0;
    const bool shortened =
        worker.told_deadline > kill_at_ && plan_.saves_on_stop && now < *kill_at_;
    if (!kill_now && (!worker.told_deadline || shortened)) {
      signals.push_back({static_cast<int>(rank), SIGTERM, worker.told_deadline.has_value()});
      worker.told_deadline = kill_at_;
    }
    if (!kill_now && now < *kill_at_) continue;
    worker.killed = true;
    if (!kill_now) killed_after_ = *kill_at_ - terminated_at_;
    signals.push_back({static_cast<int>(rank), SIGKILL});
  }
  return signals;
}

std::optional<double> GangState::NextStep() const {
  if (kill_at_) {
    const bool all_killed = std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
      return !worker.running || worker.killed;
    });
    return all_killed ? std::nullopt : kill_at_;
  }
  return timeout_at_ < kForever ? std::optional(timeout_at_) : std::nullopt;
}

std::string GangState::NameOf(int rank) const {
  return fmt::format("worker {} on {}", rank, plan_.workers[static_cast<size_t>(rank)].node);
}

std::string GangState::TooMuchMemory(int rank) const {
  const int64_t used_mib = workers_[static_cast<size_t>(rank)].too_much_mib;
  const std::string asked =
      spec::MebibytesText(plan_.workers[static_cast<size_t>(rank)].memory_mib);
  std::string used = spec::MebibytesText(used_mib);
  if (used == asked) used = fmt::format("{}MiB", used_mib);
  return fmt::format(
      "{} used {} of memory, more than the {} that its job requests (resources.memory)",
      NameOf(rank), used, asked);
}

std::string GangState::TooMuchDisk() const {
  const std::string allowed = spec::MebibytesText(plan_.max_disk_mib);
  std::string used = spec::MebibytesText(too_much_disk_mib_);
  if (used == allowed) used = fmt::format("{}MiB", too_much_disk_mib_);
  return fmt::format(
      "its files in the state directory took {}, more than the {} that a job may have there "
      "(disk.max_per_job of the cluster's configuration)",
      used, allowed);
}

std::string GangState::DescribeEndOf(int rank) const {
  if (workers_[static_cast<size_t>(rank)].too_much_mib > 0) return TooMuchMemory(rank);
  const AttemptEnd::Worker& end = workers_[static_cast<size_t>(rank)].end;
  return fmt::format("{} {}", NameOf(rank), DescribeEnd({end.exit_code, end.signal}));
}

std::string GangState::Message() const {
  if (too_much_disk_mib_ > 0) return TooMuchDisk();
  switch (by_) {
    case EndedBy::kNodeFailed:
      return fmt::format("node {} failed", failed_node_);
    case EndedBy::kItself:
    case EndedBy::kWorkerFailed:
      return first_failed_ ? DescribeEndOf(*first_failed_) : "all workers ended with exit status 0";
    case EndedBy::kRequest:
    case EndedBy::kTimeout:
    case EndedBy::kCannotStart:
    case EndedBy::kNeverStarted:
    case EndedBy::kLost:
      break;
  }
  const std::string why =
      by_ == EndedBy::kTimeout
          ? fmt::format("it ran for longer than its timeout of {} s", plan_.timeout_ms / 1000.0)
          : "it was stopped on request";
  for (size_t rank = 0; rank < workers_.size(); ++rank)
    if (workers_[rank].killed && workers_[rank].too_much_mib == 0 && !workers_[rank].node_failed)
      return fmt::format("{}; {} did not end within {:.6g} s and was killed", why,
                         NameOf(static_cast<int>(rank)), killed_after_);
  if (!first_failed_) return why + "; all workers ended with exit status 0";
  return fmt::format("{}; {}", why, DescribeEndOf(*first_failed_));
}

AttemptEnd GangState::Result() const {
  CHECK(!AnyRunning());
  AttemptEnd end;
  end.by = by_;
  for (const Worker& worker : workers_) end.workers.push_back(worker.end);
  if (first_failed_) {
    const auto first = static_cast<size_t>(*first_failed_);
    end.exit_code = workers_[first].end.exit_code;
    end.failed_on = plan_.workers[first].node;
  }
  // Whatever workers exited with before the signal: neither are they done, nor is a node at fault.
  if (too_much_disk_mib_ > 0) {
    end.exit_code = 128 + SIGKILL;
    end.failed_on.clear();
  }
  end.message = Message();
  if (by_ == EndedBy::kRequest) end.killed_after_seconds = killed_after_;
  return end;
}

}  // namespace renzan::cluster::local
