#pragma once

// Standard conditions of a status, so that `kubectl wait --for=condition=...` works.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::kubernetes {

struct Condition {
  std::string type;
  bool value = false;
  std::string reason;   // one word
  std::string message;  // one line
};

// Whether the status has this condition, True or False.
bool HasCondition(const nlohmann::json& status, const std::string& type);

// `before`: the status that it will replace; a condition with the same value keeps its time.
nlohmann::json ConditionObject(const Condition& condition, int64_t generation,
                               const nlohmann::json& before, TimeMs now);

}  // namespace renzan::cluster::kubernetes
