#pragma once

// Runs a program to its end and takes what it writes.

#include <cstddef>
#include <stop_token>
#include <string>
#include <variant>

#include "renzan/base/process/child.h"
#include "renzan/base/process/process_end.h"

namespace renzan {

struct ProgramLimits {
  double seconds = 60;
  size_t output_bytes = 1 << 20;
  // The program's stderr is copied to ours, and its last part kept; otherwise it is inherited.
  bool copy_errors = true;
};

struct ProgramResult {
  // All but kEnded: it was killed, with its process group if it leads one.
  enum class Outcome { kEnded, kTimeLimit, kOutputLimit, kStopped };
  Outcome outcome = Outcome::kEnded;
  ProcessEnd end = {};
  std::string output = {};       // from its stdout
  std::string last_errors = {};  // the last 4 KiB of its stderr, if it was copied
};

// Returns when the program has ended, even if it leaves others behind that still have its stdout;
// these keep running. The outputs that `options` names are ignored. Throws Error kOsError if the OS
// cannot create a process.
std::variant<ProgramResult, StartError> RunProgram(ChildOptions options,
                                                   const ProgramLimits& limits,
                                                   const std::stop_token& stop = {});

}  // namespace renzan
