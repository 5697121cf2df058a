#include "renzan/base/background_task.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <future>
#include <new>
#include <system_error>

namespace renzan {
namespace {

TEST(BackgroundTask, RunsConcurrentlyWithItsOwnerAndMoreThanOnce) {
  BackgroundTask task;
  EXPECT_TRUE(task.finished());
  for (int i = 0; i < 3; ++i) {
    std::promise<void> gate;
    bool ran = false;
    task.Start([&] {
      gate.get_future().wait();
      ran = true;
    });
    task.WaitFor(0.001);
    EXPECT_FALSE(task.finished());
    gate.set_value();
    task.WaitFor(60);
    EXPECT_TRUE(task.finished());
    EXPECT_TRUE(ran);
    EXPECT_FALSE(task.error().has_value());
  }
}

TEST(BackgroundTask, KeepsTheError) {
  BackgroundTask task;
  task.Start([] { Fail(ErrorCode::kIo, "the disk is full"); });
  task.WaitFor(60);
  ASSERT_TRUE(task.error().has_value());
  EXPECT_EQ(task.error()->code(), ErrorCode::kIo);
  task.Start([] {});
  task.WaitFor(60);
  EXPECT_FALSE(task.error().has_value());
}

TEST(BackgroundTask, TheDestructorWaits) {
  bool ran = false;
  {
    BackgroundTask task;
    task.Start([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

TEST(BackgroundTask, OutOfResourcesIsAnOsError) {
  const auto code_of = [](const std::function<void()>& function) {
    BackgroundTask task;
    task.Start(function);
    task.WaitFor(60);
    return task.error()->code();
  };
  EXPECT_EQ(code_of([] { throw std::bad_alloc(); }), ErrorCode::kOsError);
  EXPECT_EQ(code_of([] { throw std::system_error(EAGAIN, std::generic_category()); }),
            ErrorCode::kOsError);
  EXPECT_EQ(code_of([] { throw std::logic_error("a bug"); }), ErrorCode::kSoftware);
}

// Leaves no address space for another stack.
TEST(BackgroundTask, AThreadThatCannotBeStartedIsAnError) {
  const auto try_to_start_many = [] {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit = {pages * 4096 + (rlim_t{16} << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    std::promise<void> end;
    const std::shared_future<void> ended = end.get_future().share();
    std::deque<BackgroundTask> tasks;
    int status = 2;  // there was room for all of them: the test is wrong
    for (int i = 0; i < 100 && status == 2; ++i) {
      tasks.emplace_back();
      try {
        tasks.back().Start([ended] { ended.wait(); });
      } catch (const Error& error) {
        status = error.exit_status();
        if (!tasks.back().finished()) status = 3;
      }
    }
    end.set_value();
    return status;
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(try_to_start_many()), testing::ExitedWithCode(71), "");
}

}  // namespace
}  // namespace renzan
