#pragma once

// For writing JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace renzan {

// Null for an empty text.
nlohmann::ordered_json TextOrNull(const std::string& text);

}  // namespace renzan
