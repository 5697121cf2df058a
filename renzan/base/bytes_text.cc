#include "renzan/base/bytes_text.h"

#include <fmt/format.h>

#include <array>

namespace renzan {

std::string BytesText(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB"};
  double amount = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; amount >= 999.95 && unit + 1 < kUnits.size(); ++unit) amount /= 1000;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace renzan
