#include "renzan/cluster/kubernetes/objects/dropped_field.h"

#include <nlohmann/json.hpp>

namespace renzan::cluster::kubernetes {

std::string DroppedField(const nlohmann::json& written, const nlohmann::json& there,
                         const std::string& path) {
  for (const auto& [name, value] : written.items()) {
    if (value.is_null()) continue;
    const std::string own = path + "." + name;
    const auto found = there.find(name);
    if (found == there.end()) return own;
    if (!value.is_object() || !found->is_object()) continue;
    if (std::string dropped = DroppedField(value, *found, own); !dropped.empty()) return dropped;
  }
  return "";
}

}  // namespace renzan::cluster::kubernetes
