// Controller: jobs that may not start.

#include "renzan/base/error.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {
namespace {

constexpr const char* kNoRoom =
    "the disk of the daemon's state directory is nearly full: nothing starts until there is room "
    "(`renzan cluster status` says how much is free, and which jobs use most)";

std::string WhyHeld(const LiveRecord& live) {
  if (!live.unusable.empty()) return live.unusable;
  if (live.record.held_by.empty()) return "";
  return fmt::format("held by {}: `renzan job release {}` lets it start", live.record.held_by,
                     live.record.id);
}

}  // namespace

// With little room on the disk a start would fail, and be tried again later and later. Running jobs
// are held for that once they wait.
void Controller::UpdateHeld() {
  for (Job& job : state_.snapshot.jobs) {
    job.held = WhyHeld(state_.live.at(job.id));
    if (job.held.empty() && job.state == JobState::kPending && disk_.nearly_full())
      job.held = kNoRoom;
  }
}

RecordState Controller::Hold(JobId id, const Caller& caller) {
  LiveRecord& live = Live(id, caller);
  // An operator's hold remains.
  if (live.record.held_by.empty() || access_.IsOperator(caller))
    SetHold(live, caller.name, "held", caller);
  return live.record.state;
}

RecordState Controller::Release(JobId id, const Caller& caller) {
  LiveRecord& live = Live(id, caller);
  const std::string& by = live.record.held_by;
  if (!by.empty() && by != caller.name && !access_.IsOperator(caller))
    Fail(ErrorCode::kNoPermission, "{} holds job {}: only they and the operator may release it", by,
         id);
  if (!by.empty()) SetHold(live, "", "released", caller);
  return live.record.state;
}

void Controller::SetHold(LiveRecord& live, const std::string& by, const char* kind,
                         const Caller& caller) {
  JobRecord record = live.record;
  record.held_by = by;
  log_.Commit(record, std::nullopt, kind, fmt::format("by {}", caller.name), Now());
  live.record = record;
  state_.needs_scheduling = true;
}

}  // namespace renzan::cluster::local
