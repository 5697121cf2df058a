#include "renzan/cluster/kubernetes/objects/cluster_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* kHostLevel = "host";

// Maps some sections to the daemon's configuration, whose reader checks their values.
spec::ClusterConfig ConfigOf(const json& spec) {
  json keys = json::object();
  const auto copy = [&](const char* section, const char* from, const char* to) {
    if (const json& value = At(spec, {section, from}); !value.is_null()) keys[section][to] = value;
  };
  copy("scheduling", "order", "order");
  copy("scheduling", "serviceLevels", "service_levels");
  copy("scheduling", "minBetweenResizes", "min_between_resizes");
  copy("scheduling", "maxCheckpointInterval", "max_checkpoint_interval");
  copy("scheduling", "overdueAfter", "overdue_after");
  copy("limits", "maxPriority", "max_priority");
  copy("limits", "maxPendingJobs", "max_pending_jobs");
  copy("limits", "notPreemptible", "not_preemptible");
  copy("limits", "grandChallenge", "grand_challenge");
  copy("retention", "keepEndedFor", "keep_ended_for");
  spec::ClusterConfig config;
  ReadConfigText(keys.dump(), "spec", {}, [&](ConfigFields& fields) {
    fields.Section("scheduling", &config.scheduling, "");
    fields.Section("limits", &config.limits, "");
    fields.Section("retention", &config.retention, "");
  });
  return config;
}

void ReadTopology(const json& levels, ClusterPolicy& policy) {
  if (!levels.is_array()) return;
  policy.topology.clear();
  for (const json& each : levels) {
    const std::string level = TextAt(each, {"level"}), label = TextAt(each, {"label"});
    if (level == kHostLevel)
      Fail(ErrorCode::kConfig,
           "spec.topology has the level host, which is the node itself and always exists: leave it "
           "out");
    for (const auto& [other, other_label] : policy.topology) {
      if (level == other) Fail(ErrorCode::kConfig, "spec.topology has the level {} twice", level);
      if (label == other_label)
        Fail(ErrorCode::kConfig, "spec.topology has the label {} twice", label);
    }
    policy.topology.emplace_back(level, label);
  }
}

void ReadCaps(const json& spec, ClusterPolicy& policy) {
  for (const json& cap : At(spec, {"userCaps"})) {
    const std::string ns = TextAt(cap, {"namespace"});
    if (!policy.caps.emplace(ns, NumberAt(cap, {"maxGpus"})).second)
      Fail(ErrorCode::kConfig, "spec.userCaps has the namespace {} twice", ns);
  }
  for (const json& each : At(spec, {"overrides"})) {
    const std::string ns = TextAt(each, {"namespace"}), until = TextAt(each, {"until"});
    const auto time = ParseTime(until);
    if (!time)
      Fail(ErrorCode::kConfig,
           "spec.overrides of namespace {} ends at '{}', which is not a time: write it as "
           "2026-02-03T04:05:06Z",
           ns, until);
    policy.overrides[ns].push_back(
        {.max_gpus = NumberAt(each, {"maxGpus"}, kUnlimited), .until = *time});
  }
}

}  // namespace

ClusterPolicy ClusterPolicyFrom(const json& spec) {
  ClusterPolicy policy;
  const spec::ClusterConfig config = ConfigOf(spec);
  policy.scheduling = spec::ScheduleOptionsOf(config);
  policy.limits = {.max_priority = config.limits.max_priority,
                   .max_pending_jobs = config.limits.max_pending_jobs,
                   .not_preemptible = config.limits.not_preemptible,
                   .grand_challenge = config.limits.grand_challenge};
  for (const json& ns : At(spec, {"limits", "exemptNamespaces"}))
    if (ns.is_string()) policy.limits.exempt.insert(ns.get<std::string>());
  policy.keep_ended_ms = config.retention.keep_ended_ms();
  ReadTopology(At(spec, {"topology"}), policy);
  ReadCaps(spec, policy);
  if (const json& budget = At(spec, {"budgetPerHour"}); budget.is_number()) {
    policy.budget_per_hour = budget.get<double>();
    if (policy.budget_per_hour < 0)
      Fail(ErrorCode::kConfig, "spec.budgetPerHour is {}: it must not be negative",
           policy.budget_per_hour);
  }
  if (const json& notice = At(spec, {"spotNotice"}); notice.is_string()) {
    const auto time = spec::TryParseMilliseconds(notice.get<std::string>());
    if (!time) Fail(ErrorCode::kConfig, "spec.spotNotice {}", spec::kDurationRule);
    policy.notice_ms = *time;
  }
  return policy;
}

ClusterPolicy HoldingPolicy(const json& object) {
  try {
    return ClusterPolicyFrom(At(object, {"spec"}));
  } catch (const Error&) {
    // Its status says what is wrong.
  }
  try {
    return ClusterPolicyFrom(json::parse(TextAt(object, {"status", "holds"}, "{}")));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace renzan::cluster::kubernetes
