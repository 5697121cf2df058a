#pragma once

// `root` is prefixed to every path that is read (for tests).

#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

Finding FindMemory(const std::string& root = "");

}  // namespace renzan
