#include "renzan/base/backoff.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(Backoff, DoublesUpToTheLongest) {
  EXPECT_EQ(Backoff(1, 0, 60), 1);
  EXPECT_EQ(Backoff(1, 3, 60), 8);
  EXPECT_EQ(Backoff(1, 6, 60), 60);
  EXPECT_EQ(Backoff(100, 0, 60), 60);
  EXPECT_EQ(Backoff(0.5, 1 << 30, 60), 60);
  EXPECT_EQ(Backoff(0, 1 << 30, 60), 0);
}

}  // namespace
}  // namespace renzan
