#include "renzan/cluster/kubernetes/objects/gang_job.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/facts_json.h"
#include "renzan/cluster/spec/json_fields.h"

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

GangJobStatus StatusFrom(const json& object, const std::string& path) {
  GangJobStatus status;
  if (!object.is_object()) return status;
  if (!spec::FactsFromJson(object, status, status))
    Fail(
        ErrorCode::kData,
        "gangjob {}: its status has the unknown phase {}: use the version of renzan that wrote it, "
        "or delete the job",
        path, TextAt(object, {"phase"}));
  status.reason = TextAt(object, {"reason"});
  status.observed_generation = NumberAt(object, {"observedGeneration"});
  const json& facts = At(object, {"facts"});
  status.id = NumberAt(facts, {"id"});
  status.moved = NumberAt(facts, {"movedMs"});
  status.started_generation = NumberAt(facts, {"startedGeneration"});
  status.reservation = spec::PlacementFromJson(At(facts, {"reservation"}));
  status.checkpoint_cost = OptionalNumberAt(facts, {"checkpointCostMs"});
  status.term = NumberAt(facts, {"term"});
  status.writer = TextAt(facts, {"writer"});
  status.checkpoint_request = TextAt(facts, {"checkpointRequest"});
  status.preempt_request = TextAt(facts, {"preemptRequest"});
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
  json out = spec::FactsToJson(status, status);
  out["observedGeneration"] = status.observed_generation;
  if (!status.reason.empty()) out["reason"] = status.reason;
  out["replicas"] = NumWorkers(status.placement);
  // Workers have what their job asked for when they started.
  const bool edited = !status.placement.empty() && status.started_generation != job.generation;
  if (const int64_t gpus = edited ? NumberAt(before, {"gpus"}) : GpusOf(job); gpus > 0)
    out["gpus"] = gpus;
  if (status.first_started) out["startTime"] = TimeText(*status.first_started);
  if (status.ended) out["completionTime"] = TimeText(*status.ended);
  json& facts = out["facts"];
  facts["id"] = status.id;
  facts["term"] = status.term;
  if (status.moved != 0) facts["movedMs"] = status.moved;
  if (status.started_generation != 0) facts["startedGeneration"] = status.started_generation;
  if (!status.reservation.empty()) facts["reservation"] = spec::PlacementToJson(status.reservation);
  if (status.checkpoint_cost) facts["checkpointCostMs"] = *status.checkpoint_cost;
  if (!status.writer.empty()) facts["writer"] = status.writer;
  if (!status.checkpoint_request.empty()) facts["checkpointRequest"] = status.checkpoint_request;
  if (!status.preempt_request.empty()) facts["preemptRequest"] = status.preempt_request;
  json& conditions = out["conditions"] = json::array();
  for (const Condition& condition : ConditionsOf(status, before))
    conditions.push_back(ConditionObject(condition, status.observed_generation, before, now));
  return out;
}

}  // namespace renzan::cluster::kubernetes
