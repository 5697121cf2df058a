#pragma once

// Why a program could not be started, in words. Thread-safe.

#include <string>
#include <vector>

#include "renzan/base/process/child.h"

namespace renzan {

// As in a shell: 127 if the program does not exist, 126 for other errors.
struct StartFailure {
  int exit_code = 126;
  std::string message;       // "program 'trian' is not in PATH (/usr/bin:/bin)"
  bool is_machines = false;  // whoever asked for the process cannot have caused it
};

// Of StartChild(options). `user`: the name of the user that was to run it.
StartFailure ExplainStartError(const StartError& error, const ChildOptions& options,
                               const std::string& user);

// What exec would say: 0, ENOENT or EACCES for `program`, which is looked up in the PATH of
// `environment` ("NAME=value") unless it contains a slash. Only exec finds out whether its
// interpreter exists.
int FindProgram(const std::string& program, const std::vector<std::string>& environment);

}  // namespace renzan
