// Negative downsampling during an import, and what the dataset records of it.

#include "renzan/data/negative_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "renzan/data/synth/teacher_report.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSampledSchema[] = "columns: {y: {role: label}, x: {role: dense}}\n";

// Every tenth row is positive; x is the row's number.
std::string SampledText(int rows) {
  std::string text = "y,x\n";
  for (int row = 0; row < rows; ++row) text += fmt::format("{},{}\n", row % 10 == 0 ? 1 : 0, row);
  return text;
}

struct Downsampled : Csv {
  Downsampled(const std::vector<std::string>& texts, double share) : Csv(kSampledSchema, texts) {
    options.keep_negatives = share;
  }
};

TEST(NegativeSampler, KeepsPositivesAndAShareOfTheNegatives) {
  constexpr int kRows = 20'000, kPositives = kRows / 10;
  const Downsampled csv({SampledText(kRows)}, 0.2);
  const ImportSummary done = csv.Import();
  EXPECT_EQ(done.label.positive_rows, kPositives);
  EXPECT_EQ(done.rows + done.dropped_rows, kRows);
  const int64_t kept = done.rows - kPositives;
  const double expected = 0.2 * (kRows - kPositives), deviation = std::sqrt(expected * 0.8);
  EXPECT_NEAR(static_cast<double>(kept), expected, 4 * deviation);
  const Dataset dataset(csv.options.output);
  EXPECT_EQ(dataset.schema().negatives_kept, 0.2);
  // The rows keep their order, and lose nothing else.
  const Batch batch = testing::ReadAll(dataset);
  for (size_t i = 0; i < batch.label.size(); ++i) {
    EXPECT_EQ(batch.label[i] == 1, static_cast<int>(batch.dense[i]) % 10 == 0);
    EXPECT_TRUE(i == 0 || batch.dense[i - 1] < batch.dense[i]);
  }
}

// Shards, files and bad rows elsewhere do not matter; the seed does.
TEST(NegativeSampler, WhichRowsAreAFunctionOfSeedAndRow) {
  const std::string text = SampledText(3000);
  const std::vector<float> chosen = Downsampled({text}, 0.3).Read().dense;
  Downsampled shards({text}, 0.3);
  shards.options.shard_rows = 101;
  EXPECT_EQ(shards.Read().dense, chosen);
  const size_t middle = text.find("\n", text.size() / 2) + 1;
  EXPECT_EQ(Downsampled({text.substr(0, middle), "y,x\n" + text.substr(middle)}, 0.3).Read().dense,
            chosen);
  Downsampled seeded({text}, 0.3);
  seeded.options.seed = 1;
  EXPECT_NE(seeded.Read().dense, chosen);
  // A smaller share keeps some of the same rows.
  const std::vector<float> fewer = Downsampled({text}, 0.1).Read().dense;
  EXPECT_LT(fewer.size(), chosen.size());
  EXPECT_TRUE(std::includes(chosen.begin(), chosen.end(), fewer.begin(), fewer.end()));
}

// What another program dropped before counts too.
TEST(NegativeSampler, SharesMultiply) {
  Csv before(std::string("negatives_kept: 0.5\n") + kSampledSchema, {SampledText(1000)});
  before.Import();
  const Dataset dataset(before.options.output);
  EXPECT_EQ(dataset.num_rows(), 1000);
  EXPECT_EQ(dataset.schema().negatives_kept, 0.5);
  Csv both(std::string("negatives_kept: 0.5\n") + kSampledSchema, {SampledText(1000)});
  both.options.keep_negatives = 0.5;
  both.Import();
  EXPECT_EQ(Dataset(both.options.output).schema().negatives_kept, 0.25);
  // The same samples with another meaning.
  Csv plain(kSampledSchema, {SampledText(1000)});
  plain.Import();
  EXPECT_NE(Dataset(plain.options.output).fingerprint(), dataset.fingerprint());
  EXPECT_EQ(Dataset(plain.options.output).schema().negatives_kept, 1);
  // All of them, and nothing recorded.
  Downsampled all({SampledText(1000)}, 1);
  all.Import();
  EXPECT_EQ(ReadFile(all.options.output + "/dataset.yaml"),
            ReadFile(plain.options.output + "/dataset.yaml"));
}

TEST(NegativeSampler, WrongShares) {
  for (const double share : {0.0, -0.5, 1.5, std::nan("")})
    ExpectError(ErrorCode::kUsage, HasSubstr("greater than 0 and at most 1"),
                [&] { Downsampled({SampledText(10)}, share).Import(); });
  for (const char* kept : {"0", "1.5", ".nan"})
    EXPECT_ANY_THROW(
        Csv(fmt::format("negatives_kept: {}\n", kept) + kSampledSchema, {SampledText(10)})
            .Import());
  ExpectError(ErrorCode::kData, HasSubstr("kept 0 of 3 valid rows with label 0"),
              [] { Downsampled({"y,x\n0,1\n0,2\n0,3\n"}, 1e-6).Import(); });
}

// A test set may be downsampled as well, by a seed of its own.
TEST(NegativeSampler, OfATestSet) {
  Csv train(kSampledSchema, {SampledText(100)});
  train.Import();
  Downsampled test({SampledText(1000)}, 0.5);
  test.options.vocabulary.clear();
  test.options.vocabulary_from = train.options.output;
  test.options.seed = 7;
  EXPECT_GT(test.Import().dropped_rows, 0);
  EXPECT_EQ(Dataset(test.options.output).schema().negatives_kept, 0.5);
}

// The best AUC of a generated file is that of all of its rows.
TEST(NegativeSampler, LeavesTheGeneratorsReportOut) {
  Downsampled csv({SampledText(100)}, 0.5);
  WriteTeacherReport(csv.options.inputs[0], 100, 1, 0, {0.8, 0.4});
  csv.Import();
  EXPECT_FALSE(Dataset(csv.options.output).bayes_optimal().has_value());
  csv.options.keep_negatives.reset();
  csv.options.output += ".all";
  csv.Import();
  EXPECT_TRUE(Dataset(csv.options.output).bayes_optimal().has_value());
}

}  // namespace
}  // namespace renzan
