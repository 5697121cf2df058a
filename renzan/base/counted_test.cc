#include "renzan/base/counted.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(Counted, OneHasNoS) {
  EXPECT_EQ(Counted(0, "step"), "0 steps");
  EXPECT_EQ(Counted(1, "step"), "1 step");
  EXPECT_EQ(Counted(size_t{2}, "step"), "2 steps");
  EXPECT_EQ(Counted(int64_t{1} << 40, "step"), "1099511627776 steps");
  EXPECT_EQ(Counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(Counted(11, "entry", "entries"), "11 entries");
  EXPECT_EQ(Counted("1", "core"), "1 core");
  EXPECT_EQ(Counted("0.5", "core"), "0.5 cores");
}

}  // namespace
}  // namespace renzan
