#pragma once

// How a process ended.

#include <string>

namespace renzan {

struct ProcessEnd {
  int exit_code = 0;  // 0 if a signal ended it
  int signal = 0;     // 0 if it ended by itself

  // As a shell reports it: 128 + signal if a signal ended it.
  int ShellStatus() const { return signal != 0 ? 128 + signal : exit_code; }
};

// From the status that waitpid() returned.
ProcessEnd EndOf(int wait_status);

// "was killed by signal 9 (Killed)", "ended with exit status 3"
std::string DescribeEnd(const ProcessEnd& end);

}  // namespace renzan
