#include "renzan/data/text/parse_number.h"

#include <charconv>

namespace renzan {

std::optional<double> ParseNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || stop != text.end() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace renzan
