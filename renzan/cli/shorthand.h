#pragma once

// Flags that are shorthand for --set.

#include <span>
#include <string>

#include "renzan/base/error.h"

namespace renzan {

struct Shorthand {
  std::string typed, override_text;  // "--workers 2", "workers=2"
};

// Errors begin with the override that they are about: throws `error` with the flag in its place, if
// one of `flags` was typed instead.
[[noreturn]] void RethrowAsTyped(const Error& error, std::span<const Shorthand> flags);

}  // namespace renzan
