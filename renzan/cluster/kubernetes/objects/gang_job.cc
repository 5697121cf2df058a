#include "renzan/cluster/kubernetes/objects/gang_job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"
#include "renzan/cluster/kubernetes/objects/json_fields.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

// Maps spec's keys to those of a job specification, whose reader checks their values.
json SpecificationOf(const json& spec) {
  json keys = {{"command", {"the", "pod", "template"}}};
  const auto copy = [&](const char* from, const char* to) {
    if (spec.contains(from)) keys[to] = spec[from];
  };
  copy("queue", "queue");
  copy("priority", "priority");
  copy("retries", "retries");
  copy("retryBackoff", "retry_backoff");
  copy("timeout", "timeout");
  copy("preemptible", "preemptible");
  copy("grandChallenge", "grand_challenge");
  const int64_t most = NumberAt(spec, {"replicas"}, 1);
  const int64_t least = NumberAt(spec, {"minReplicas"}, most);
  keys["replicas"] = least == most ? fmt::format("{}", most) : fmt::format("{}..{}", least, most);
  const json& checkpoint = At(spec, {"checkpoint"});
  for (const auto& [from, to] : {std::pair{"onStop", "on_stop"},
                                 {"onRequest", "on_request"},
                                 {"maxInterval", "max_interval"}})
    if (const json& value = At(checkpoint, {from}); !value.is_null())
      keys["checkpoint"][to] = value;
  const json& topology = At(spec, {"topology"});
  if (const std::string level = TextAt(topology, {"level"}); !level.empty()) {
    keys["constraints"]["topology"] = level;
    keys["constraints"]["topology_required"] = IsTrueAt(topology, {"required"});
  }
  // Kubernetes's own: the pod's grace period.
  keys["grace"] =
      fmt::format("{}s", NumberAt(spec, {"template", "spec", "terminationGracePeriodSeconds"}, 30));
  return keys;
}

void ReadSpec(const json& spec, GangJob& job) {
  const json& pod = At(spec, {"template", "spec"});
  job.per_worker = PodRequest(pod);
  if (const json& selector = At(pod, {"nodeSelector"}); selector.is_object())
    for (const auto& [name, value] : selector.items())
      if (value.is_string()) job.node_selector[name] = value.get<std::string>();
  job.cancelled = IsTrueAt(spec, {"cancelled"});
  job.held = IsTrueAt(spec, {"held"});
  const std::string start_timeout = TextAt(spec, {"startTimeout"}, "30m");
  if (const auto limit = spec::TryParseMilliseconds(start_timeout))
    job.start_timeout_ms = *limit;
  else
    job.invalid = fmt::format("{}: startTimeout is '{}': it {}", job.path(), start_timeout,
                              spec::kDurationRule);
  try {
    job.spec = spec::ReadJobSpec(SpecificationOf(spec).dump(), job.path());
    job.spec.name = job.name;
    job.node_filter = NodeFilter(pod);
  } catch (const Error& error) {
    job.invalid = error.what();
  }
}

json PlacementObject(const NamedPlacement& placement) {
  json list = json::array();
  for (const NodeShare& share : placement)
    list.push_back({{"node", share.node}, {"workers", share.workers}});
  return list;
}

NamedPlacement PlacementFrom(const json& list) {
  NamedPlacement placement;
  for (const json& share : list)
    placement.push_back({TextAt(share, {"node"}), static_cast<int>(NumberAt(share, {"workers"}))});
  return placement;
}

GangJobStatus StatusFrom(const json& object, const std::string& path) {
  GangJobStatus status;
  if (!object.is_object()) return status;
  const std::string phase = TextAt(object, {"phase"}, "pending");
  const auto state = RecordStateNamed(phase);
  if (!state)
    Fail(
        ErrorCode::kData,
        "gangjob {}: its status has the unknown phase {}: use the version of renzan that wrote it, "
        "or delete the job",
        path, phase);
  status.state = *state;
  status.attempts = static_cast<int>(NumberAt(object, {"attempts"}));
  status.placement = PlacementFrom(At(object, {"placement"}));
  status.target = PlacementFrom(At(object, {"target"}));
  status.message = TextAt(object, {"message"});
  status.reason = TextAt(object, {"reason"});
  status.stop_reason = TextAt(object, {"stopReason"});
  status.observed_generation = NumberAt(object, {"observedGeneration"});
  if (const json& code = At(object, {"exitCode"}); code.is_number_integer())
    status.exit_code = code.get<int>();
  const json& facts = At(object, {"facts"});
  status.id = NumberAt(facts, {"id"});
  status.moved = NumberAt(facts, {"movedMs"});
  status.started = NumberAt(facts, {"startedMs"});
  status.started_generation = NumberAt(facts, {"startedGeneration"});
  status.backfilled = IsTrueAt(facts, {"backfilled"});
  status.stopping_for = NumberAt(facts, {"stoppingFor"});
  status.waiting_since = NumberAt(facts, {"waitingSinceMs"});
  status.eligible_at = NumberAt(facts, {"eligibleAtMs"});
  status.last_resize = NumberAt(facts, {"lastResizeMs"});
  status.run_ms = NumberAt(facts, {"runMs"});
  status.attained_worker_ms = NumberAt(facts, {"attainedWorkerMs"});
  status.preemptions = static_cast<int>(NumberAt(facts, {"preemptions"}));
  status.reservation_yields = static_cast<int>(NumberAt(facts, {"reservationYields"}));
  status.failures = static_cast<int>(NumberAt(facts, {"failures"}));
  status.requeues = static_cast<int>(NumberAt(facts, {"requeues"}));
  for (const json& node : At(facts, {"failedOn"}))
    if (node.is_string()) status.failed_on.push_back(node.get<std::string>());
  status.reservation = PlacementFrom(At(facts, {"reservation"}));
  if (const json& times = At(facts, {"runTimeMs"});
      times.is_array() && times.size() == status.run_time.size())
    for (size_t at = 0; at < times.size(); ++at)
      if (times[at].is_number_integer()) status.run_time[at] = times[at].get<TimeMs>();
  if (const json& cost = At(facts, {"checkpointCostMs"}); cost.is_number_integer())
    status.checkpoint_cost = cost.get<TimeMs>();
  status.term = NumberAt(facts, {"term"});
  status.writer = TextAt(facts, {"writer"});
  status.checkpoint_request = TextAt(facts, {"checkpointRequest"});
  status.preempt_request = TextAt(facts, {"preemptRequest"});
  if (const json& time = At(facts, {"firstStartedMs"}); time.is_number_integer())
    status.first_started = time.get<TimeMs>();
  if (const json& time = At(facts, {"endedMs"}); time.is_number_integer())
    status.ended = time.get<TimeMs>();
  return status;
}

// As in Kubernetes' own Jobs, there is no condition for an end that has not come: the server's work
// grows with the number of fields.
std::vector<Condition> ConditionsOf(const GangJobStatus& status, const json& before) {
  const std::string reason = status.reason.empty() ? "Waiting" : status.reason;
  std::vector<Condition> conditions = {
      {"Running", status.state == RecordState::kRunning, reason, status.message}};
  if (HasEnded(status.state))
    conditions.push_back(
        {status.state == RecordState::kDone ? "Complete" : "Failed", true, reason, status.message});
  if (!status.is_spec_applied())
    conditions.push_back(
        {"SpecApplied", false, "AppliesAtNextStart",
         "the workers were started before the last change of the specification, of which only "
         "another size applies to them: the rest applies when the job starts again"});
  else if (HasCondition(before, "SpecApplied"))
    conditions.push_back({"SpecApplied", true, "Applied", "nothing is left to apply"});
  return conditions;
}

}  // namespace

GangJob GangJobFrom(std::shared_ptr<const json> object) {
  GangJob job{.ns = TextAt(*object, {"metadata", "namespace"}),
              .name = TextAt(*object, {"metadata", "name"}),
              .uid = TextAt(*object, {"metadata", "uid"}),
              .resource_version = TextAt(*object, {"metadata", "resourceVersion"}),
              .generation = NumberAt(*object, {"metadata", "generation"})};
  job.created = ParseTime(TextAt(*object, {"metadata", "creationTimestamp"})).value_or(0);
  job.deleting = At(*object, {"metadata", "deletionTimestamp"}).is_string();
  job.checkpoint_request = TextAt(*object, {"metadata", "annotations", kRequestCheckpoint});
  job.preempt_request = TextAt(*object, {"metadata", "annotations", kRequestPreempt});
  ReadSpec(At(*object, {"spec"}), job);
  // It waits for its pods to go, or for somebody's finalizer.
  job.cancelled |= job.deleting;
  job.status = StatusFrom(At(*object, {"status"}), job.path());
  job.object = std::move(object);
  return job;
}

int64_t GpusOf(const GangJob& job) {
  const auto gpus = job.per_worker.find(kGpuResource);
  if (gpus == job.per_worker.end() || !job.invalid.empty()) return 0;
  int workers = NumWorkers(job.status.placement);
  if (workers == 0) workers = job.spec.max_workers();
  int64_t all = 0;
  return __builtin_mul_overflow(gpus->second, workers, &all) ? 0 : all;  // no node has so many
}

json StatusObject(const GangJob& job, const json& before, TimeMs now) {
  const GangJobStatus& status = job.status;
  json out = {{"phase", NameOf(status.state)},
              {"attempts", status.attempts},
              {"placement", PlacementObject(status.placement)},
              {"observedGeneration", status.observed_generation}};
  // Empty texts are left out: some servers take an empty text for null and reject it.
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  put("message", status.message);
  put("reason", status.reason);
  put("stopReason", status.stop_reason);
  if (!status.target.empty()) out["target"] = PlacementObject(status.target);
  out["replicas"] = NumWorkers(status.placement);
  // Workers have what their job asked for when they started.
  const bool edited = !status.placement.empty() && status.started_generation != job.generation;
  if (const int64_t gpus = edited ? NumberAt(before, {"gpus"}) : GpusOf(job); gpus > 0)
    out["gpus"] = gpus;
  if (status.exit_code) out["exitCode"] = *status.exit_code;
  if (status.first_started) out["startTime"] = TimeText(*status.first_started);
  if (status.ended) out["completionTime"] = TimeText(*status.ended);
  // Most are 0 in most jobs, and the server's work grows with the number of fields.
  json& facts = out["facts"] = {{"id", status.id},
                                {"preemptions", status.preemptions},
                                {"failures", status.failures},
                                {"term", status.term}};
  const auto put_number = [&](const char* key, int64_t number) {
    if (number != 0) facts[key] = number;
  };
  put_number("movedMs", status.moved);
  put_number("startedMs", status.started);
  put_number("startedGeneration", status.started_generation);
  put_number("stoppingFor", status.stopping_for);
  put_number("waitingSinceMs", status.waiting_since);
  put_number("eligibleAtMs", status.eligible_at);
  put_number("lastResizeMs", status.last_resize);
  put_number("runMs", status.run_ms);
  put_number("attainedWorkerMs", status.attained_worker_ms);
  put_number("reservationYields", status.reservation_yields);
  put_number("requeues", status.requeues);
  if (status.backfilled) facts["backfilled"] = true;
  if (!status.failed_on.empty()) facts["failedOn"] = status.failed_on;
  if (!status.reservation.empty()) facts["reservation"] = PlacementObject(status.reservation);
  if (status.run_time.back() > 0) facts["runTimeMs"] = status.run_time;
  if (status.checkpoint_cost) facts["checkpointCostMs"] = *status.checkpoint_cost;
  if (!status.writer.empty()) facts["writer"] = status.writer;
  if (!status.checkpoint_request.empty()) facts["checkpointRequest"] = status.checkpoint_request;
  if (!status.preempt_request.empty()) facts["preemptRequest"] = status.preempt_request;
  if (status.first_started) facts["firstStartedMs"] = *status.first_started;
  if (status.ended) facts["endedMs"] = *status.ended;
  json& conditions = out["conditions"] = json::array();
  for (const Condition& condition : ConditionsOf(status, before))
    conditions.push_back(ConditionObject(condition, status.observed_generation, before, now));
  return out;
}

}  // namespace renzan::cluster::kubernetes
