#pragma once

#include <string>

namespace renzan {

// What `renzan --version` prints: this build, the instruction set that runs take unless theirs is
// pinned, and the libraries that are loaded, some of which decide the bits of a model.
std::string VersionText();

// Of the MPI library that is loaded: "Open MPI v4.1.4".
std::string MpiLibraryVersion();

}  // namespace renzan
