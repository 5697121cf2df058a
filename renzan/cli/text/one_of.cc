#include "renzan/cli/text/one_of.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "renzan/base/config/config.h"

namespace renzan {

CLI::Validator OneOf(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    const std::string nearest = NearestName(text, words);
    return fmt::format("'{}' is not one of {}{}", text, fmt::join(words, ", "),
                       nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
  };
  return CLI::Validator(check, fmt::format("{{{}}}", fmt::join(words, ",")));
}

}  // namespace renzan
