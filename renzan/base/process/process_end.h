#pragma once

// How a process ended.

#include <string>

namespace renzan {

struct ProcessEnd {
  int exit_code = 0;  // 0 if a signal ended it
  int signal = 0;     // 0 if it ended by itself

  // As a shell says it: 128 + signal if one ended it.
  int ShellStatus() const { return signal != 0 ? 128 + signal : exit_code; }
};

// Of what waitpid() said about a process that has ended.
ProcessEnd EndOf(int wait_status);

// "was killed by signal 9 (Killed)", "ended with exit status 3"
std::string DescribeEnd(const ProcessEnd& end);

}  // namespace renzan
