// Carries out and checks a policy's decisions.

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/simulate/deadlock.h"
#include "renzan/cluster/simulate/simulation.h"

namespace renzan::cluster::simulate {
namespace {

constexpr size_t kMostViolations = 20;

void Append(std::string& text, const Placement& placement) {
  for (const Placed& placed : placement) text += fmt::format(" {}x{}", placed.node, placed.workers);
}

// All decisions as text, to compare two cycles.
std::string Write(const Decisions& decisions) {
  std::string text;
  for (const Start& start : decisions.starts) {
    text += fmt::format("\nstart {} {}", start.job, start.backfill);
    Append(text, start.placement);
  }
  for (const Stop& stop : decisions.stops)
    text += fmt::format("\nstop {} {} {}", stop.job, NameOf(stop.reason), stop.on_behalf_of);
  for (const Resize& resize : decisions.resizes) {
    text += fmt::format("\nresize {} {}", resize.job, resize.on_behalf_of);
    Append(text, resize.target);
  }
  for (const JobId job : decisions.checkpoints) text += fmt::format("\ncheckpoint {}", job);
  for (const ScaleOut& order : decisions.scale_out)
    text += fmt::format("\nbuy {} {}", order.pool, order.nodes);
  for (const ScaleIn& order : decisions.scale_in) text += fmt::format("\nreturn {}", order.node);
  for (const Reservation& reservation : decisions.reservations) {
    text += fmt::format("\nreserve {}", reservation.job);
    Append(text, reservation.placement);
  }
  for (const Wait& wait : decisions.waits)
    text += fmt::format("\nwait {} {} {}", wait.job, NameOf(wait.reason), wait.blocked_by);
  return text + fmt::format("\nlook again {}", decisions.look_again);
}

}  // namespace

// Returns whether anything changed. Taking workers out of a gang stops it, and a gang whose workers
// are all placed starts: the Lifecycle does both. Workers of a gang that is not complete are
// unknown to it.
bool Simulation::Apply(PolicyOutput output) {
  Decisions& decisions = output.decisions;
  for (const Evict& evict : output.evicts) {
    cluster_.Evict(evict);
    decisions.stops.insert(decisions.stops.begin(), {evict.job, StopReason::kPreempted});
  }
  for (const Hold& hold : output.holds)
    if (auto room = cluster_.Hold(hold)) decisions.starts.push_back({hold.job, std::move(*room)});
  result_.totals.starts += static_cast<int64_t>(decisions.starts.size());
  const bool held = !output.evicts.empty() || !output.holds.empty();
  holds_changed_ |= held;
  return lifecycle_.CarryOut(decisions) || held;
}

void Simulation::Violation(const std::string& what) {
  if (result_.violations.size() < kMostViolations)
    result_.violations.push_back(fmt::format("at {} ms: {}", cluster_.now(), what));
}

void Simulation::CheckCluster() {
  for (const std::string& broken : ValidateSnapshot(cluster_.snapshot())) Violation(broken);
}

void Simulation::CheckCycle(const Decisions& decisions) {
  for (const std::string& broken : ValidateDecisions(cluster_.snapshot(), decisions))
    Violation(broken);
  // A restarted daemon must make the same decisions from the same snapshot.
  const PolicyInput input{cluster_.snapshot(), cluster_.pending(), cluster_.free(), cluster_.held(),
                          run_time_,           end_time_,          for_estimates_};
  if (Write(policy_.DecideAgain(input).decisions) != Write(decisions))
    Violation("the same snapshot gave different decisions");
}

void Simulation::WatchDeadlocks() {
  if (!std::exchange(holds_changed_, false)) return;
  deadlocked_ = FindDeadlocked(cluster_.snapshot(), cluster_.held());
  if (deadlocked_.empty()) deadlock_deadline_ = kNever;
  if (deadlocked_.empty() || deadlock_deadline_ != kNever) return;
  deadlock_deadline_ = cluster_.now() + options_.deadlock_timeout_ms;
  Expect(deadlock_deadline_, What::kDeadlockTimeout, 0, 0);
}

void Simulation::ResolveDeadlock() {
  cluster_.ReleaseHeld(deadlocked_.back());
  ++result_.totals.deadlocks;
  deadlock_deadline_ = kNever;
  holds_changed_ = true;
}

}  // namespace renzan::cluster::simulate
