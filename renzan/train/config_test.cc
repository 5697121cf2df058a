#include "renzan/train/config.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

TrainConfig Read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  TrainConfig config;
  ReadConfigText(yaml, "c.yaml", overrides, [&](ConfigFields& fields) { config.Describe(fields); });
  return config;
}

void ExpectError(const std::string& yaml, const std::string& fragment) {
  try {
    Read(yaml);
    FAIL() << "accepted: " << yaml;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

constexpr char kMinimal[] = "data: {train: {path: d}}\n";

TEST(TrainConfig, PrintsWhatReadsBackTheSame) {
  const TrainConfig config = Read(kMinimal, {"numerics.virtual_workers=4", "model.top_mlp=[7, 3]"});
  TrainConfig copy = config;
  const std::string printed =
      PrintConfig([&](ConfigFields& fields) { copy.Describe(fields); }, true);
  TrainConfig again = Read(printed);
  EXPECT_EQ(again.numerics.virtual_workers, 4);
  EXPECT_EQ(again.model.top_mlp, (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(PrintConfig([&](ConfigFields& fields) { again.Describe(fields); }, true), printed);
}

TEST(TrainConfig, SaysWhatCannotBe) {
  ExpectError(std::string(kMinimal) + "training: {batch_size: 2047}\n",
              "must be a multiple of numerics.virtual_workers (8)");
  ExpectError(std::string(kMinimal) + "workers: 9\n",
              "workers = 9 is more than the 8 virtual workers");
  ExpectError(std::string(kMinimal) + "numerics: {virtual_workers: 6}\n", "power of two");
  ExpectError(std::string(kMinimal) + "optimizer: {dense: {epsilon: 0}}\n", "out of range");
  ExpectError(std::string(kMinimal) + "features: {categorical: [a]}\n", "one entry for each");
  ExpectError(std::string(kMinimal) + "numerics: {virtual_worker: 8}\n",
              "did you mean 'virtual_workers'");
  ExpectError(std::string(kMinimal) + "model: {type: dlmr}\n", "did you mean 'dlrm'");
  ExpectError(std::string(kMinimal) + "comm: {forward: int8}\n", "fp16");
  ExpectError("data: {train: {path: d, rows: [5, 5]}}\n", "begin < end");
}

}  // namespace
}  // namespace renzan
