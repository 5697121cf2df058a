#include "renzan/base/process/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace renzan {
namespace {

TEST(SignalQueue, KeepsSignalsUntilTheyAreFetched) {
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  {
    const SignalQueue queue({SIGTERM, SIGUSR1});
    EXPECT_EQ(queue.Take(), 0);
    EXPECT_EQ(queue.Next(0, -1), 0);
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(queue.Next(60, -1), SIGUSR1);
    kill(getpid(), SIGTERM);
    EXPECT_EQ(queue.Take(), SIGTERM);
    EXPECT_EQ(queue.Take(), 0);
    EXPECT_EQ(sigismember(&queue.mask_before(), SIGTERM), 0);
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}

// As in a loop that only polls the descriptor.
TEST(SignalQueue, DiscardsWhatIsNotTaken) {
  static volatile std::sig_atomic_t arrived = 0;
  std::signal(SIGUSR1, [](int) { arrived = 1; });
  {
    const SignalQueue queue({SIGTERM, SIGUSR1});
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGTERM);
  }
  EXPECT_EQ(arrived, 0);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(SignalQueue, EndsTheWaitWhenTheOtherDescriptorIsReady) {
  const SignalQueue queue({SIGUSR1});
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(queue.Next(1e6, ends[0]), 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(Signals, IsIgnoredAndIsStopSignal) {
  EXPECT_FALSE(IsIgnored(SIGUSR2));
  std::signal(SIGUSR2, SIG_IGN);
  EXPECT_TRUE(IsIgnored(SIGUSR2));
  EXPECT_EQ(NotIgnored({SIGTERM, SIGUSR2, SIGUSR1}), (std::vector<int>{SIGTERM, SIGUSR1}));
  std::signal(SIGUSR2, SIG_DFL);
  EXPECT_TRUE(IsStopSignal(SIGHUP));
  EXPECT_FALSE(IsStopSignal(SIGUSR1));
}

}  // namespace
}  // namespace renzan
