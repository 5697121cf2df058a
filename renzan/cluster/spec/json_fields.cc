#include "renzan/cluster/spec/json_fields.h"

#include <nlohmann/json.hpp>

namespace renzan::cluster {

using nlohmann::json;

const json& At(const json& object, FieldPath path) {
  static const json null;
  const json* at = &object;
  for (const std::string_view key : path) {
    if (!at->is_object()) return null;
    const auto found = at->find(key);
    if (found == at->end()) return null;
    at = &*found;
  }
  return *at;
}

std::string TextAt(const json& object, FieldPath path, const std::string& missing) {
  const json& value = At(object, path);
  return value.is_string() ? value.get<std::string>() : missing;
}

int64_t NumberAt(const json& object, FieldPath path, int64_t missing) {
  return OptionalNumberAt(object, path).value_or(missing);
}

std::optional<int64_t> OptionalNumberAt(const json& object, FieldPath path) {
  const json& value = At(object, path);
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

bool IsTrueAt(const json& object, FieldPath path, bool missing) {
  const json& value = At(object, path);
  return value.is_boolean() ? value.get<bool>() : missing;
}

}  // namespace renzan::cluster
