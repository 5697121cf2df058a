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

// Returns whether anything changed.
bool Simulation::Apply(const PolicyOutput& output) {
  const Decisions& decisions = output.decisions;
  for (const Evict& evict : output.evicts) {
    const auto gone = cluster_.Evict(evict);
    if (gone) ExpectOfJob(*gone, What::kStopEnds, evict.job);
  }
  const bool changed = CarryOut(decisions, cluster_.facts(), *this);
  for (const Hold& hold : output.holds) {
    const auto end = cluster_.Hold(hold);
    if (!end) continue;
    ExpectOfJob(*end, What::kJobEnds, hold.job);
    ++result_.totals.starts;
  }
  holds_changed_ |= !output.holds.empty() || !output.evicts.empty();
  return changed || !output.evicts.empty() || !output.holds.empty();
}

void Simulation::Perform(const Start& start) {
  ++result_.totals.starts;
  ExpectOfJob(cluster_.Started(start.job), What::kJobEnds, start.job);
}

void Simulation::Perform(const Stop& stop) {
  ExpectOfJob(cluster_.Stopped(stop.job, stop.reason), What::kStopEnds, stop.job);
}

void Simulation::Perform(const Resize& resize) {
  ExpectOfJob(cluster_.Moved(resize.job), What::kResizeEnds, resize.job);
}

void Simulation::Perform(const CheckpointRequest& request) {
  ++result_.totals.checkpoints_requested;
  cluster_.Checkpoint(request.job);
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
  const PolicyInput input{cluster_.snapshot(), cluster_.pending(), cluster_.free(),
                          cluster_.held(),     run_time_,          end_time_};
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
