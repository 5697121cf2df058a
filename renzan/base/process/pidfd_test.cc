#include "renzan/base/process/pidfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>

namespace renzan {
namespace {

TEST(ProcessHandle, SignalsAndWaits) {
  const pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  const ProcessHandle process(pid);
  ASSERT_TRUE(process);
  EXPECT_NE(fcntl(process.fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(process.WaitForEnd(0));
  EXPECT_TRUE(process.Signal(SIGKILL));
  EXPECT_TRUE(process.WaitForEnd(60));
  waitpid(pid, nullptr, 0);
  EXPECT_FALSE(process.Signal(SIGKILL));
}

TEST(ProcessHandle, OfNoProcessIsFalse) { EXPECT_FALSE(ProcessHandle(INT_MAX)); }

}  // namespace
}  // namespace renzan
