#include "renzan/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {
std::atomic<int> yields = 0;
}

// Replaces the C library's.
extern "C" int sched_yield() noexcept {
  ++yields;
  return 0;
}

namespace renzan {
namespace {

void RunLoops(ThreadPool& pool, int loops) {
  std::vector<int> calls(static_cast<size_t>(pool.num_threads()));
  for (int i = 0; i < loops; ++i)
    pool.RunOnAll([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
  for (const int count : calls) EXPECT_EQ(count, loops);
}

TEST(ThreadPool, ATeamLargerThanItsCpusDoesNotSpin) {
  yields = 0;
  std::this_thread::yield();
  ASSERT_EQ(yields, 1) << "yields are not counted";
  for (const int usable_cpus : {1, 3}) {
    ThreadPool pool(4, usable_cpus);
    RunLoops(pool, 200);
  }
  EXPECT_EQ(yields, 1);
}

TEST(ThreadPool, TeamsTogetherLargerThanTheirCpusDoNotSpin) {
  yields = 0;
  {
    ThreadPool other(1, 2);
    ThreadPool pool(2, 2);
    RunLoops(pool, 200);
  }
  EXPECT_EQ(yields, 0);
  ThreadPool alone(2, 2);
  RunLoops(alone, 2000);
  EXPECT_GT(yields, 0);
}

TEST(ThreadPool, ATeamThatFitsRunsEveryLoopToo) {
  ThreadPool pool(4, 4);
  RunLoops(pool, 2000);
}

}  // namespace
}  // namespace renzan
