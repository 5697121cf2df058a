#pragma once

// CPU cores and their instruction sets. `root` is prefixed to every path that is read (for tests).

#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

Finding FindCores(const std::string& root = "");

// `widest` is the class that SelectIsa("auto") selects.
Finding FindInstructionSet(const std::string& widest);

// AMX, by the CPU flags that the kernel lists. If the kernel hides it, programs cannot use it.
Finding FindAmx(const std::string& root = "");

}  // namespace renzan
