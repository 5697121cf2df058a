#pragma once

// Processors and what they can compute with. `root` is prefixed to every path that is read, for
// tests.

#include <string>

#include "renzan/cli/machine/finding.h"

namespace renzan {

Finding FindCores(const std::string& root = "");

// `widest` is the class that SelectIsa("auto") takes.
Finding FindInstructionSet(const std::string& widest);

// AMX, by the flags that the kernel lists. A kernel that hides it keeps programs from using it.
Finding FindAmx(const std::string& root = "");

}  // namespace renzan
