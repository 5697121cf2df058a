#include "renzan/base/background_task.h"

#include <gtest/gtest.h>

#include <future>

namespace renzan {
namespace {

TEST(BackgroundTask, RunsBesideItsOwnerAndMoreThanOnce) {
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

TEST(BackgroundTask, IsWaitedForAtTheEnd) {
  bool ran = false;
  {
    BackgroundTask task;
    task.Start([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace renzan
