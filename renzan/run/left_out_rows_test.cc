#include "renzan/run/left_out_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

TrainConfig ConfigOf(int64_t batch_size, int virtual_workers = 8) {
  TrainConfig config;
  config.training.batch_size = batch_size;
  config.numerics.virtual_workers = virtual_workers;
  return config;
}

TEST(LeftOutRows, AdviceNamesABatchSizeThatLeavesOutFewest) {
  EXPECT_EQ(LeftOutAdvice(ConfigOf(2048), 3072, 1),
            "1024 of 3072 training rows (33.3 %) are never trained on, because they do not fill a "
            "batch of 2048; training.batch_size: 1536 leaves out none");
  // 3001 is a prime number.
  EXPECT_THAT(LeftOutAdvice(ConfigOf(2048), 3001, 1), HasSubstr("batch_size: 1496 leaves out 9"));
}

TEST(LeftOutRows, EachEpochLeavesOutOthersWhereRowsAreShuffled) {
  TrainConfig config = ConfigOf(2048);
  EXPECT_THAT(LeftOutAdvice(config, 3072, 4),
              HasSubstr("left out of each epoch, others each time"));
  config.data.shuffle = false;
  EXPECT_THAT(LeftOutAdvice(config, 3072, 4), HasSubstr("never trained on"));
}

TEST(LeftOutRows, NoAdviceWithoutNeed) {
  EXPECT_EQ(LeftOutAdvice(ConfigOf(1024), 3072, 3), "");
  EXPECT_EQ(LeftOutAdvice(ConfigOf(256), 1'000'000, 3906), "");  // 64 rows
  EXPECT_EQ(LeftOutRows(ConfigOf(256), 1'000'000, 3906), 64);
  // Whoever trains on less than an epoch has decided to.
  EXPECT_EQ(LeftOutAdvice(ConfigOf(1024), 3500, 2), "");
  EXPECT_EQ(LeftOutRows(ConfigOf(1024), 3500, 2), 0);
}

TEST(LeftOutRows, FewerRowsThanABatchAreAnErrorWithABatchSizeThatWorks) {
  const auto message_of = [](const TrainConfig& config, int64_t rows) -> std::string {
    try {
      CheckFillsBatch(config, rows);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of(ConfigOf(2048), 2048), "");
  EXPECT_THAT(message_of(ConfigOf(2048), 500), HasSubstr("set training.batch_size to 496,"));
  EXPECT_EQ(message_of(ConfigOf(496), 500), "");
  EXPECT_THAT(message_of(ConfigOf(2048), 5), HasSubstr("set numerics.virtual_workers"));
  EXPECT_EQ(message_of(ConfigOf(1, 1), 5), "");
}

}  // namespace
}  // namespace renzan
