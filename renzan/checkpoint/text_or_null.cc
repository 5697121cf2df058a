#include "renzan/checkpoint/text_or_null.h"

#include <nlohmann/json.hpp>

namespace renzan {

nlohmann::ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace renzan
