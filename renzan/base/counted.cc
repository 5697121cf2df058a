#include "renzan/base/counted.h"

#include <fmt/format.h>

namespace renzan {

std::string Counted(int64_t number, std::string_view one, std::string_view plural) {
  return Counted(fmt::format("{}", number), one, plural);
}

std::string Counted(std::string_view number, std::string_view one, std::string_view plural) {
  if (number == "1") return fmt::format("1 {}", one);
  return plural.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, plural);
}

}  // namespace renzan
