#include "renzan/cli/shorthand.h"

#include <fmt/format.h>

#include <string_view>

namespace renzan {

void RethrowAsTyped(const Error& error, std::span<const Shorthand> flags) {
  const std::string_view message = error.what();
  for (const Shorthand& flag : flags) {
    const std::string start = fmt::format("--set {}: ", flag.override_text);
    if (message.starts_with(start))
      throw Error(error.code(), fmt::format("{}: {}", flag.typed, message.substr(start.size())));
  }
  throw error;
}

}  // namespace renzan
