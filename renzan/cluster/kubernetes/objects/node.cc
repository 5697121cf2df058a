#include "renzan/cluster/kubernetes/objects/node.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

using nlohmann::json;

namespace {

// The taint's value is when it was set, in seconds since 1970.
constexpr const char* kAutoscalerTaint = "ToBeDeletedByClusterAutoscaler";

bool IsLeaving(const std::string& taint) {
  const auto& leaving = LeavingTaints();
  return std::find(leaving.begin(), leaving.end(), taint) != leaving.end();
}

// When the machine was announced to be taken away. Kubernetes records a time only for NoExecute.
std::optional<TimeMs> AnnouncedAt(const json& taint) {
  if (const auto added = ParseTime(TextAt(taint, {"timeAdded"}))) return added;
  if (TextAt(taint, {"key"}) != kAutoscalerTaint) return std::nullopt;
  const std::string value = TextAt(taint, {"value"});
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || end != value.data() + value.size() || seconds <= 0 ||
      seconds > kNever / kSecond)
    return std::nullopt;
  return seconds * kSecond;
}

}  // namespace

const std::vector<std::string>& LeavingTaints() {
  static const std::vector<std::string> taints = {
      "aws-node-termination-handler/spot-itn",
      "aws-node-termination-handler/scheduled-maintenance",
      "aws-node-termination-handler/asg-lifecycle-termination",
      "aws-node-termination-handler/rebalance-recommendation",
      "cloud.google.com/impending-node-termination",
      kAutoscalerTaint,
      "karpenter.sh/disrupted",
      "karpenter.sh/disruption"};
  return taints;
}

KubernetesNode NodeFrom(const json& object) {
  KubernetesNode node{.name = TextAt(object, {"metadata", "name"})};
  const std::string version = TextAt(object, {"metadata", "resourceVersion"});
  std::from_chars(version.data(), version.data() + version.size(), node.version);
  if (const json& labels = At(object, {"metadata", "labels"}); labels.is_object())
    for (const auto& [name, value] : labels.items())
      if (value.is_string()) node.labels[name] = value.get<std::string>();
  node.created = ParseTime(TextAt(object, {"metadata", "creationTimestamp"})).value_or(0);
  node.allocatable = AmountsOf(At(object, {"status", "allocatable"}));
  for (const json& condition : At(object, {"status", "conditions"}))
    if (TextAt(condition, {"type"}) == "Ready") {
      node.ready = TextAt(condition, {"status"}) == "True";
      node.silent = TextAt(condition, {"status"}) == "Unknown";
    }
  for (const json& address : At(object, {"status", "addresses"}))
    if (node.address.empty() && TextAt(address, {"type"}) == "InternalIP")
      node.address = TextAt(address, {"address"});
  const auto announce = [&](const std::string& what, std::optional<TimeMs> since) {
    node.leaving = what;
    if (since) node.leaving_since = std::min(*since, node.leaving_since.value_or(kNever));
  };
  if (const std::string deleted = TextAt(object, {"metadata", "deletionTimestamp"});
      !deleted.empty())
    announce("deletion", ParseTime(deleted));
  node.cordoned = IsTrueAt(object, {"spec", "unschedulable"});
  for (const json& taint : At(object, {"spec", "taints"})) {
    const std::string key = TextAt(taint, {"key"});
    if (IsLeaving(key)) announce(key, AnnouncedAt(taint));
  }
  for (const Taint& taint : TaintsFrom(At(object, {"spec", "taints"}))) {
    if (taint.key == kDrainTaint)
      node.draining = true;
    else if (taint.key == kReturningTaint)
      node.returning = true;
    else if (taint.key.starts_with("node.kubernetes.io/") ||
             taint.key.starts_with("node.cloudprovider.kubernetes.io/"))
      // For a node that is not ready, its conditions say more.
      node.cordoned |= taint.key != "node.kubernetes.io/not-ready" &&
                       taint.key != "node.kubernetes.io/unreachable";
    else if (!IsLeaving(taint.key))
      node.taints.push_back(taint);
  }
  return node;
}

}  // namespace renzan::cluster::kubernetes
