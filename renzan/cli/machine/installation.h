#pragma once

// The locations of the program and of what belongs to it.

#include <string>

namespace renzan {

// The path of renzan-supervisor, which supervises one attempt of a job: next to this program (build
// directory), or in ../libexec/renzan (installation). Throws Error kNoInput.
std::string SupervisorProgram();

// The path of librenzan_jobs.so, which has the job system's verbs: next to this program, or in
// ../lib. Throws Error kNoInput.
std::string JobSystemLibrary();
// What helps if it is missing.
inline constexpr const char* kHowToGetJobSystem =
    "build it with `scripts/build`, or reinstall renzan";

// The path of this program's file, as /proc/self/exe names it.
std::string ThisProgram();

}  // namespace renzan
