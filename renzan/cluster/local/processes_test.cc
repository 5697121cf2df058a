#include "renzan/cluster/local/processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

namespace renzan::cluster {
namespace {

TEST(Processes, OneThatIsGoneHasNoContents) {
  EXPECT_NE(Contents(getpid(), "status"), "");
  EXPECT_EQ(Contents(INT_MAX, "status"), "");
  // It can be opened and not be read, as status when the process ends in between.
  EXPECT_EQ(Contents(getpid(), "mem"), "");
}

}  // namespace
}  // namespace renzan::cluster
