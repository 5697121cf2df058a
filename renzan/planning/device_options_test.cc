#include "renzan/planning/device_options.h"

#include <gtest/gtest.h>

#include "renzan/step/testing.h"

namespace renzan {
namespace {

TEST(DeviceOptions, ThreadsAreDividedWhereAGpuComputesWholeSteps) {
  TrainConfig config = SmallConfig();
  const auto pool_and_readers = [&](int workers, int threads) {
    const int pool = PoolThreads(TestSpec(config), workers, threads);
    return std::pair(pool, BatchReaders(TestSpec(config), workers, pool));
  };
  EXPECT_EQ(pool_and_readers(1, 16), std::pair(16, 1)) << "on processors";
  config.device = "cuda";
  for (const auto& [threads, pool, readers] :
       {std::tuple{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {15, 7, 7}, {16, 8, 8}, {32, 24, 8}})
    EXPECT_EQ(pool_and_readers(1, threads), std::pair(pool, readers)) << threads;
  EXPECT_EQ(pool_and_readers(2, 16), std::pair(16, 1)) << "tables are in the host's memory";
  config.optimizer.max_gradient_norm = 1;
  EXPECT_EQ(pool_and_readers(1, 16), std::pair(16, 1)) << "so they are here";
}

}  // namespace
}  // namespace renzan
