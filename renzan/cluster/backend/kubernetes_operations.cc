#include "renzan/cluster/backend/kubernetes_operations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster {
namespace {

using kubernetes::ApiError;
using nlohmann::json;

constexpr const char* kLeaseNamespace = "renzan-system";
constexpr const char* kLeaseName = "renzan-controller";
// If two operators write at once, the second reads and tries again.
constexpr int kMaxConflicts = 5;

int64_t CapOf(const json& policy, const std::string& ns) {
  for (const json& cap : At(policy, {"spec", "userCaps"}))
    if (TextAt(cap, {"namespace"}) == ns) return NumberAt(cap, {"maxGpus"}, kUnlimited);
  return kUnlimited;
}

json WithOverride(const json& policy, const CapOverride& added, TimeMs now) {
  json overrides = json::array();
  for (const json& each : At(policy, {"spec", "overrides"})) {
    const auto until = kubernetes::ParseTime(TextAt(each, {"until"}));
    if (until && *until > now) overrides.push_back(each);
  }
  overrides.push_back({{"namespace", added.ns},
                       {"maxGpus", added.max_gpus},
                       {"until", kubernetes::TimeText(added.until)}});
  return overrides;
}

}  // namespace

void CordonNode(kubernetes::Api& api, const std::string& node, bool cordoned) {
  // null removes the field, as `kubectl uncordon` does.
  api.MergePatch(kubernetes::Nodes(), "", node,
                 {{"spec", {{"unschedulable", cordoned ? json(true) : json()}}}});
}

void OverrideCap(kubernetes::Api& api, const CapOverride& cap_override, TimeMs now) {
  for (int conflicts = 0;; ++conflicts) {
    json policy;
    try {
      policy = api.Get(kubernetes::ClusterPolicies(), "", kubernetes::kPolicyName);
    } catch (const ApiError& error) {
      if (!error.is_not_found() || error.reason() != "NotFound") throw;
    }
    const int64_t cap = CapOf(policy, cap_override.ns);
    if (cap == kUnlimited)
      Fail(ErrorCode::kUsage,
           "{} has no cap that could be raised: caps are in spec.userCaps of the ClusterPolicy {}",
           cap_override.ns, kubernetes::kPolicyName);
    if (cap_override.max_gpus <= cap)
      Fail(ErrorCode::kUsage, "{} already has a cap of {}; an override must be higher",
           cap_override.ns, Counted(cap, "GPU"));
    const json patch = {
        {"metadata", {{"resourceVersion", TextAt(policy, {"metadata", "resourceVersion"})}}},
        {"spec", {{"overrides", WithOverride(policy, cap_override, now)}}}};
    try {
      api.MergePatch(kubernetes::ClusterPolicies(), "", kubernetes::kPolicyName, patch);
      return;
    } catch (const ApiError& error) {
      if (!error.is_conflict() || conflicts == kMaxConflicts) throw;
    }
  }
}

Document LeaderOf(kubernetes::Api& api) {
  try {
    const json lease = api.Get(kubernetes::Leases(), kLeaseNamespace, kLeaseName);
    const std::string holder = TextAt(lease, {"spec", "holderIdentity"});
    return holder.empty() ? Document() : Document(holder);
  } catch (const ApiError& error) {
    if (!error.is_not_found() && !error.is_forbidden()) throw;
    return nullptr;
  }
}

}  // namespace renzan::cluster
