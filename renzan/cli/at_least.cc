#include "renzan/cli/at_least.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

namespace renzan {

CLI::Validator AtLeast(int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= least) return "";
    return fmt::format("'{}' is not a whole number of at least {}", text, least);
  };
  return CLI::Validator(check, fmt::format("[{} - ]", least));
}

}  // namespace renzan
