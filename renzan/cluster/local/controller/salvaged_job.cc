#include "renzan/cluster/local/controller/salvaged_job.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan::cluster::local {
namespace {

constexpr double kGraceWithoutPlan = 30;  // seconds: that of a job which does not state any
// How many of the latest attempts are asked for the job's owner.
constexpr int kPlansToRead = 8;

std::optional<Agent::Started> FindAttempt(Agent& agent, const JobDirectories& directories,
                                          JobId job, int number) {
  std::optional<Agent::Started> found = agent.Find(directories.OfAttempt(job, number));
  if (found &&
      (found->plan.job != job || found->plan.attempt != number || found->plan.workers.empty()))
    found.reset();
  return found;
}

AttemptReport ReportOfAttempt(Agent& agent, const std::string& directory) {
  try {
    return agent.Report(directory);
  } catch (const Error& error) {
    LogWarning("{}", error.what());
    return {.phase = AttemptPhase::kRunning};  // it may be
  }
}

NamedPlacement PlacementOf(const AttemptPlan& plan) {
  NamedPlacement placement;
  for (const AttemptPlan::Worker& worker : plan.workers) {
    if (placement.empty() || placement.back().node != worker.node)
      placement.push_back({.node = worker.node});
    ++placement.back().workers;
    placement.back().devices.push_back(worker.devices);
  }
  return placement;
}

// Nobody knows where its workers are. Throws Error if they cannot be told to stop.
void EndWithoutPlan(Agent& agent, JobId job, const std::string& directory, AttemptPhase phase) {
  if (phase == AttemptPhase::kLost) {
    agent.CleanUp(directory);
    return;
  }
  LogError(
      "job {}: {} does not say where its workers are: they are told to stop, and may run on nodes "
      "that count as free",
      job, directory);
  agent.Stop(directory, kGraceWithoutPlan);
}

// The attempt after those that have been recorded as ended, if it was started. Returns how it ended
// if it has and nobody knows where it ran; otherwise it is the record's.
std::optional<AttemptEnd> TakeAttempt(Agent& agent, const JobDirectories& directories, TimeMs now,
                                      JobRecord& record) {
  const std::string directory = directories.OfAttempt(record.id, record.attempts);
  AttemptReport report = ReportOfAttempt(agent, directory);
  if (report.phase == AttemptPhase::kNone) return std::nullopt;
  const auto found = FindAttempt(agent, directories, record.id, record.attempts);
  if (!found) {
    if (report.phase != AttemptPhase::kEnded)
      EndWithoutPlan(agent, record.id, directory, report.phase);
    return std::move(report.end);
  }
  const AttemptPlan& plan = found->plan;
  AttemptRecord attempt;
  attempt.job = record.id;
  attempt.number = record.attempts++;
  attempt.placement = PlacementOf(plan);
  attempt.started = found->at.value_or(now);
  record.attempt = std::move(attempt);
  if (!record.first_started) record.first_started = record.attempt->started;
  record.min_workers = record.max_workers = static_cast<int>(plan.workers.size());
  record.cpu_millis = plan.workers[0].cpu_millis;
  record.memory_mib = plan.workers[0].memory_mib;
  record.gpus = static_cast<int64_t>(plan.workers[0].devices.size());
  return std::nullopt;
}

void TakeOwner(Agent& agent, const JobDirectories& directories, JobRecord& record) {
  for (int number = record.attempts; number >= std::max(0, record.attempts - kPlansToRead);
       --number)
    if (const auto found = FindAttempt(agent, directories, record.id, number)) {
      record.uid = found->plan.uid;
      record.gid = found->plan.gid;
      return;
    }
}

}  // namespace

std::string EndOfDamaged(const JobRecord& record) {
  return fmt::format("{}, so it was ended: submit it again", record.damaged);
}

JobRecord SalvageJob(const DamagedJob& damaged, Agent& agent, const JobDirectories& directories,
                     TimeMs now) {
  JobRecord record = damaged.record;
  std::optional<AttemptEnd> end;
  if (!damaged.owner_known) {
    TakeOwner(agent, directories, record);
    end = TakeAttempt(agent, directories, now, record);
    try {
      const spec::JobSpec spec = spec::ReadJobSpec(record.spec, fmt::format("job {}", record.id));
      record.name = spec.name;
      record.priority = spec.priority;
    } catch (const Error&) {  // it is damaged, too, or of another version
    }
  }
  record.reservation.clear();
  record.held_by.clear();
  record.message = EndOfDamaged(record);
  if (record.attempt) {
    record.state = RecordState::kStopping;
    record.attempt->target.clear();
    record.attempt->stop_reason = record.damaged;
    record.attempt->stopping_for = 0;
    return record;
  }
  const std::optional<Collection> collection = std::exchange(record.collection, {});
  record.state = collection ? collection->becomes : RecordState::kFailed;
  record.ended = collection ? collection->ended : now;
  if (collection)
    record.message = record.damaged + ": what it left behind may not have been collected";
  if (end && end->by == EndedBy::kItself && end->exit_code == 0) {
    record.state = RecordState::kDone;
    record.exit_code = 0;
    record.ended = end->ended_ms;
    record.message =
        record.damaged + ", but its workers had ended by themselves with exit status 0";
  }
  return record;
}

void TakeGraceFromPlan(const JobRecord& record, Agent& agent, const JobDirectories& directories,
                       spec::JobSpec& spec) {
  if (record.damaged.empty() || !record.spec.empty() || !record.attempt) return;
  if (const auto found = FindAttempt(agent, directories, record.id, record.attempt->number))
    spec.grace = fmt::format("{}ms", static_cast<int64_t>(found->plan.grace_seconds * 1000));
}

}  // namespace renzan::cluster::local
