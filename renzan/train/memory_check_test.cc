#include "renzan/train/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renzan {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

TEST(MemoryCheck, WorkersOfAHostShareItsMemory) {
  const std::vector<MemoryEstimate> workers(4, {.tables = 3 * kGib, .program = kGib / 2});
  const std::vector<MemoryRoom> rooms(4, {.bytes = 8 * kGib});
  EXPECT_EQ(WhyItDoesNotFit(workers, {.hosts = {{0, 2}, {2, 4}}}, rooms), "");
  const std::string why = WhyItDoesNotFit(workers, Topology::OneHost(4), rooms);
  EXPECT_THAT(why, testing::HasSubstr("workers 0 to 3 need 14336 MiB of memory, but 8192 MiB"));
  EXPECT_THAT(why, testing::HasSubstr("on their host"));
  EXPECT_THAT(why, testing::HasSubstr("     3      3072         0         0       512      3584\n"));
}

TEST(MemoryCheck, TheSmallestCgroupOfAHostDecides) {
  const std::vector<MemoryEstimate> workers(2, {.tables = 3 * kGib});
  const std::vector<MemoryRoom> rooms = {{8 * kGib, ""}, {4 * kGib, "/sys/fs/cgroup/box"}};
  EXPECT_EQ(WhyItDoesNotFit({workers[0]}, Topology::OneHost(1), {rooms[0]}), "");
  EXPECT_THAT(WhyItDoesNotFit(workers, Topology::OneHost(2), rooms),
              testing::HasSubstr("in the cgroup /sys/fs/cgroup/box"));
  EXPECT_EQ(WhyItDoesNotFit(workers, {.hosts = {{0, 1}, {1, 2}}}, rooms), "");
}

}  // namespace
}  // namespace renzan
