#pragma once

// Where the program was started: relative paths of the command line begin there.

#include <string>

namespace renzan {

// Throws Error kNoInput if it no longer exists or cannot be read.
std::string WorkingDirectory();

// Without "." and "..". Throws as WorkingDirectory() does, for relative paths.
std::string AbsolutePath(const std::string& path);

}  // namespace renzan
