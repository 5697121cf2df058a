#include "renzan/cluster/kubernetes/objects/conditions.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

using nlohmann::json;

bool HasCondition(const json& status, const std::string& type) {
  const json& conditions = At(status, {"conditions"});
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const json& condition) { return TextAt(condition, {"type"}) == type; });
}

json ConditionObject(const Condition& condition, int64_t generation, const json& before,
                     TimeMs now) {
  const std::string value = condition.value ? "True" : "False";
  std::string since = TimeText(now);
  for (const json& old : At(before, {"conditions"}))
    if (TextAt(old, {"type"}) == condition.type && TextAt(old, {"status"}) == value)
      since = TextAt(old, {"lastTransitionTime"}, since);
  return {{"type", condition.type},
          {"status", value},
          {"reason", condition.reason},
          {"message", condition.message.empty() ? condition.reason : condition.message},
          {"lastTransitionTime", since},
          {"observedGeneration", generation}};
}

}  // namespace renzan::cluster::kubernetes
