#include "renzan/cluster/kubernetes/objects/node_filter.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

std::optional<int64_t> Number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What only kube-scheduler honours, and a gang's own topology expresses better.
void RefuseOthers(const json& pod_spec) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"})
    if (const json& terms = At(pod_spec, {"affinity", kind, kRequired});
        terms.is_array() && !terms.empty())
      Fail(ErrorCode::kConfig,
           "the pod template requires {}, which Renzan does not support: leave it out, and see "
           "spec.topology",
           kind);
  for (const json& spread : At(pod_spec, {"topologySpreadConstraints"}))
    if (TextAt(spread, {"whenUnsatisfiable"}, "DoNotSchedule") == "DoNotSchedule")
      Fail(ErrorCode::kConfig,
           "the pod template has topologySpreadConstraints, which Renzan does not support: leave "
           "them out, and see spec.topology");
}

}  // namespace

std::vector<Taint> TaintsFrom(const json& taints) {
  std::vector<Taint> found;
  for (const json& taint : taints) {
    const std::string effect = TextAt(taint, {"effect"});
    if (effect == "NoSchedule" || effect == "NoExecute")
      found.push_back({TextAt(taint, {"key"}), TextAt(taint, {"value"}), effect});
  }
  return found;
}

NodeFilter::NodeFilter(const json& pod_spec) {
  RefuseOthers(pod_spec);
  for (const json& each : At(pod_spec, {"tolerations"}))
    tolerations_.push_back({.key = TextAt(each, {"key"}),
                            .value = TextAt(each, {"value"}),
                            .effect = TextAt(each, {"effect"}),
                            .any_value = TextAt(each, {"operator"}) == "Exists",
                            .for_a_while = each.contains("tolerationSeconds")});
  const json& required = At(pod_spec, {"affinity", "nodeAffinity", kRequired});
  if (!required.is_object()) return;
  has_terms_ = true;
  for (const json& each : At(required, {"nodeSelectorTerms"})) {
    Term term;
    for (const json& label : At(each, {"matchExpressions"}))
      term.push_back(RequirementFrom(label, false));
    for (const json& field : At(each, {"matchFields"}))
      term.push_back(RequirementFrom(field, true));
    // A term without requirements admits no node.
    if (!term.empty()) terms_.push_back(std::move(term));
  }
}

NodeFilter::Requirement NodeFilter::RequirementFrom(const json& object, bool of_name) {
  Requirement requirement{.key = TextAt(object, {"key"}),
                          .operation = TextAt(object, {"operator"}),
                          .of_name = of_name};
  for (const json& value : At(object, {"values"}))
    if (value.is_string()) requirement.values.push_back(value.get<std::string>());
  const auto known = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  if (std::find(known.begin(), known.end(), requirement.operation) == known.end())
    Fail(ErrorCode::kConfig,
         "the pod template's required node affinity has the operator '{}' for {}: it must be In, "
         "NotIn, Exists, DoesNotExist, Gt or Lt",
         requirement.operation, requirement.key);
  if (of_name && requirement.key != "metadata.name")
    Fail(ErrorCode::kConfig,
         "the pod template's required node affinity has the field {}: only metadata.name is known",
         requirement.key);
  return requirement;
}

bool NodeFilter::Holds(const Requirement& requirement, const std::string& node,
                       const Labels& labels) {
  const auto label = labels.find(requirement.key);
  const bool exists = requirement.of_name || label != labels.end();
  const std::string& value = requirement.of_name || !exists ? node : label->second;
  const auto& values = requirement.values;
  const bool listed = exists && std::find(values.begin(), values.end(), value) != values.end();
  const std::string& operation = requirement.operation;
  if (operation == "In") return listed;
  if (operation == "NotIn") return !listed;
  if (operation == "Exists") return exists;
  if (operation == "DoesNotExist") return !exists;
  if (!exists || values.size() != 1) return false;
  const auto mine = Number(value), bound = Number(values[0]);
  if (!mine || !bound) return false;
  return operation == "Gt" ? *mine > *bound : *mine < *bound;
}

bool NodeFilter::Tolerates(const Taint& taint) const {
  if (taint.key == kDedicatedTaint) return true;
  return std::any_of(tolerations_.begin(), tolerations_.end(), [&](const Toleration& each) {
    if (!each.effect.empty() && each.effect != taint.effect) return false;
    if (taint.effect == "NoExecute" && each.for_a_while) return false;
    if (each.key.empty()) return each.any_value;
    return each.key == taint.key && (each.any_value || each.value == taint.value);
  });
}

bool NodeFilter::Admits(const std::string& node, const Labels& labels,
                        const std::vector<Taint>& taints) const {
  if (!std::all_of(taints.begin(), taints.end(),
                   [&](const Taint& taint) { return Tolerates(taint); }))
    return false;
  return !has_terms_ || std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return std::all_of(term.begin(), term.end(), [&](const Requirement& requirement) {
      return Holds(requirement, node, labels);
    });
  });
}

}  // namespace renzan::cluster::kubernetes
