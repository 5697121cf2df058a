#include "renzan/base/process/pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace renzan {

// Raw system calls, because glibc 2.36 declares its wrappers without extern "C".
ProcessHandle::ProcessHandle(pid_t pid)
    : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

bool ProcessHandle::Signal(int signal) const {
  return ::syscall(SYS_pidfd_send_signal, fd_.get(), signal, nullptr, 0) == 0;
}

bool ProcessHandle::WaitForEnd(double seconds) const {
  pollfd end = {fd_.get(), POLLIN, 0};
  return ::poll(&end, 1, static_cast<int>(seconds * 1000)) > 0;
}

}  // namespace renzan
