#pragma once

// Where this program's companions are.

#include <string>

namespace renzan {

// The program that looks after one attempt at a job: beside this program (a build directory), or in
// ../libexec/renzan (an installation). Throws Error kNoInput.
std::string SupervisorProgram();

}  // namespace renzan
