#pragma once

// This process's command line, as it was given to it.

#include <string>
#include <vector>

namespace renzan {

std::vector<std::string> CommandLine();

// Those after the first "--". CLI11 would take the argument "[a,b]" for two.
std::vector<std::string> WordsAfterDashes();

}  // namespace renzan
