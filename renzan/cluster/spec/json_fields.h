#pragma once

// Reads fields that may be missing: objects from the API server have been checked against a schema,
// but most fields are optional. A field of another type counts as missing.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace renzan::cluster {

using FieldPath = std::initializer_list<std::string_view>;

// The value at the end of a path of keys; null if there is none.
const nlohmann::json& At(const nlohmann::json& object, FieldPath path);

std::string TextAt(const nlohmann::json& object, FieldPath path, const std::string& missing = "");
int64_t NumberAt(const nlohmann::json& object, FieldPath path, int64_t missing = 0);
std::optional<int64_t> OptionalNumberAt(const nlohmann::json& object, FieldPath path);
bool IsTrueAt(const nlohmann::json& object, FieldPath path, bool missing = false);

}  // namespace renzan::cluster
