#include "renzan/base/process/process_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <vector>

namespace renzan {
namespace {

TEST(ProcessTable, AnEndedProcessHasNoFiles) {
  EXPECT_NE(ProcessFile(getpid(), "status"), "");
  EXPECT_EQ(ProcessFile(INT_MAX, "status"), "");
  // Can be opened but not read, like status if the process ends in between.
  EXPECT_EQ(ProcessFile(getpid(), "mem"), "");
}

// Writes its pid to `said`.
void ReportPid(int said) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t self = getpid();
  if (write(said, &self, sizeof(self)) != sizeof(self)) _exit(1);
}

// A session leader with a child in its session, a zombie, and a child that leads another session
// with a child of its own. Does not return.
void Lead(int said) {
  setsid();
  ReportPid(said);
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT);
  if (fork() == 0) {
    prctl(PR_SET_NAME, "a) Z 1 (b");
    ReportPid(said);
  } else if (fork() == 0) {
    setsid();
    ReportPid(said);
    if (fork() == 0) ReportPid(said);
  }
  for (;;) pause();
}

TEST(ProcessTable, AZombieIsNotAlive) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(ChildrenOf(getpid()), testing::Contains(child));
  EXPECT_FALSE(IsAlive(child));
  EXPECT_FALSE(StartTicksOf(child));
  EXPECT_TRUE(IsAlive(getpid()));
  EXPECT_FALSE(IsAlive(INT_MAX));
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(ProcessTable, ProcessesOfALeaderAreItsSessionAndDescendants) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t leader = fork();
  if (leader == 0) Lead(ends[1]);
  std::vector<pid_t> all;
  for (pid_t pid = 0; all.size() < 4; all.push_back(pid))
    ASSERT_EQ(read(ends[0], &pid, sizeof(pid)), ssize_t{sizeof(pid)});
  const std::vector<std::vector<pid_t>> found = ProcessesOf({0, leader, INT_MAX});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_THAT(found[0], testing::IsEmpty());
  EXPECT_THAT(found[1], testing::UnorderedElementsAreArray(all));
  EXPECT_THAT(found[2], testing::IsEmpty());
  kill(leader, SIGKILL);
  waitpid(leader, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace renzan
