#pragma once

#include <string>

namespace renzan {

// The output of `renzan --version`: the build, the default instruction set, and the loaded
// libraries, some of which affect the bits of a model.
std::string VersionText();

// The version of the loaded MPI library: "Open MPI v4.1.4".
std::string MpiLibraryVersion();

}  // namespace renzan
