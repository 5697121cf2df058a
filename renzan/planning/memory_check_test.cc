#include "renzan/planning/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renzan {
namespace {

using testing::HasSubstr;

constexpr int64_t kGib = int64_t{1} << 30;

TEST(MemoryCheck, WorkersOfAMachineShareItsMemory) {
  const std::vector<MemoryEstimate> workers(4, {.tables = 3 * kGib, .program = kGib / 2});
  // Ranks alternate between the machines.
  const std::vector<SharedMemory> two = {{"", 8 * kGib, {0, 2}}, {"", 8 * kGib, {1, 3}}};
  EXPECT_EQ(WhyItDoesNotFit(workers, two), "");
  const std::vector<SharedMemory> one = {{"", 8 * kGib, {0, 1, 2, 3}}};
  const std::string why = WhyItDoesNotFit(workers, one);
  EXPECT_THAT(why, HasSubstr("workers 0, 1, 2, 3 need 14336 MiB of memory, but 8192 MiB"));
  EXPECT_THAT(why, HasSubstr("on their machine"));
  EXPECT_THAT(why,
              HasSubstr("     3      3072         0         0       512           0      3584\n"));
}

TEST(MemoryCheck, EveryCgroupMustSuffice) {
  const std::vector<MemoryEstimate> workers(2, {.tables = 6 * kGib});
  // One container per worker.
  std::vector<SharedMemory> memory = {
      {"", 16 * kGib, {0, 1}}, {"/a", 8 * kGib, {0}}, {"/b", 8 * kGib, {1}}};
  EXPECT_EQ(WhyItDoesNotFit(workers, memory), "");
  memory[2].bytes = 5 * kGib;
  EXPECT_THAT(WhyItDoesNotFit(workers, memory),
              HasSubstr("worker 1 needs 6144 MiB of memory, but 5120 MiB are available in the "
                        "cgroup /b"));
}

TEST(MemoryCheck, WorkersShareWhatIsLeftForCopies) {
  const std::vector<MemoryEstimate> workers = {{.tables = 3 * kGib, .more_copies = 3 * kGib},
                                               {.tables = 2 * kGib, .more_copies = kGib / 4},
                                               {.tables = 4 * kGib, .more_copies = 4 * kGib}};
  const std::vector<SharedMemory> memory = {
      {"", 10 * kGib, {0, 1}}, {"", 100 * kGib, {2}}, {"/a", 4 * kGib, {2}}};
  EXPECT_EQ(RoomForCopies(0, workers, memory), 2 * kGib);  // (9 - 5) / 2
  EXPECT_EQ(RoomForCopies(1, workers, memory), kGib / 4);
  EXPECT_EQ(RoomForCopies(2, workers, memory), 0);
  EXPECT_EQ(RoomForCopies(2, workers, {}), 4 * kGib);
}

}  // namespace
}  // namespace renzan
