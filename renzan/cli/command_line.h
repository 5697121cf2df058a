#pragma once

// This process's command line, as it was given to it.

#include <string>
#include <vector>

namespace renzan {

std::vector<std::string> CommandLine();

// The words after the first "--". CLI11 would split the argument "[a,b]" into two.
std::vector<std::string> WordsAfterDashes();

}  // namespace renzan
