#include "renzan/cli/whole_numbers.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace renzan {
namespace {

// Rewrites `text` without leading zeros and plus sign; returns what is wrong with it, or "".
template <typename Number>
std::string Normalize(std::string& text) {
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  Number number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (rest != end || digits.empty() || error == std::errc::invalid_argument)
    return fmt::format("'{}' is not a whole number{}", text,
                       std::is_unsigned_v<Number> ? " of at least 0" : "");
  if (error != std::errc()) return fmt::format("'{}' is too large", text);
  text = fmt::format("{}", number);
  return "";
}

}  // namespace

void ReadWholeNumbersAsDecimal(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    // The description of AtLeast() follows a name that was given to the type.
    const std::string type = option->get_type_name();
    const bool is_unsigned = type.starts_with("UINT");
    if (!is_unsigned && !type.starts_with("INT") && type.find(":[") == std::string::npos) continue;
    option->transform(CLI::Validator(is_unsigned ? Normalize<uint64_t> : Normalize<int64_t>,
                                     /*validator_desc=*/""));
  }
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    ReadWholeNumbersAsDecimal(*verb);
}

}  // namespace renzan
