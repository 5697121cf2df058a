#pragma once

// The locations of the helper programs.

#include <string>

namespace renzan {

// The path of renzan-supervisor, which supervises one attempt of a job: next to this program (build
// directory), or in ../libexec/renzan (installation). Throws Error kNoInput.
std::string SupervisorProgram();

// The path of this program, or of the one that it was when it was started.
std::string ThisProgram();

}  // namespace renzan
