#include "renzan/base/process/process_end.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstring>

namespace renzan {

ProcessEnd EndOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.signal = WTERMSIG(wait_status)};
  return {.exit_code = WEXITSTATUS(wait_status)};
}

std::string DescribeEnd(const ProcessEnd& end) {
  if (end.signal != 0)
    return fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal));
  return fmt::format("ended with exit status {}", end.exit_code);
}

}  // namespace renzan
