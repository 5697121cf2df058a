// Labels that are numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/label_summary.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;

const char kRatingsSchema[] =
    "columns:\n"
    "  rating: {role: label, values: number}\n"
    "  x: {role: dense}\n"
    "  seconds: {role: label, values: number, optional: true}\n"
    "  liked: {role: label}\n";
const char kRatedRows[] = "rating,x,seconds,liked\n4.5,1,100,1\n-0,2,,0\n3e0,3,-20.5,1\n";

TEST(NumberLabels, AreTakenAsTheyAre) {
  Csv csv(kRatingsSchema, {kRatedRows});
  const ImportSummary summary = csv.Import();
  ASSERT_TRUE(summary.label.numbers.has_value());
  EXPECT_EQ(summary.label.numbers->min, 0);
  EXPECT_EQ(summary.label.numbers->mean, 2.5);
  EXPECT_EQ(summary.label.numbers->max, 4.5);
  EXPECT_EQ(summary.label.positive_rows, -1);
  EXPECT_EQ(Describe(summary.further_labels[0]),
            "label 'seconds': mean 39.75, from -20.5 to 100 in 2 rows");
  EXPECT_EQ(Describe(summary.further_labels[1]), "label 'liked': 1 in 2 of 3 rows");
  const Dataset dataset(csv.options.output);
  dataset.Verify();
  EXPECT_EQ(dataset.manifest().format_version, kNumberLabelsFormatVersion);
  EXPECT_THAT(dataset.schema().number_labels(), ElementsAre("rating", "seconds"));
  EXPECT_FALSE(dataset.manifest().HasOneValue("rating"));
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.labels(0), ElementsAre(4.5f, 0, 3));
  EXPECT_FALSE(std::signbit(batch.labels(0)[1]));
  EXPECT_EQ(batch.labels(1)[0], 100);
  EXPECT_TRUE(std::isnan(batch.labels(1)[1]));
  EXPECT_EQ(batch.labels(1)[2], -20.5);
}

TEST(NumberLabels, OnlyNumbersOfASensibleSizeAreAllowed) {
  for (const char* bad : {"", "five", "nan", "inf", "-2e9", "1e300"}) {
    Csv csv("columns:\n  y: {role: label, values: number}\n  x: {role: dense}\n",
            {fmt::format("y,x\n1,1\n{},2\n", bad)});
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr(":3: column 1 (y): "),
                      HasSubstr(*bad == 0 ? "it is missing" : "from -1000000000 to 1000000000")),
                [&] { csv.Import(); });
  }
  Csv both("columns:\n  y: {role: label, values: number, at_least: 4}\n  x: {role: dense}\n",
           {"y,x\n1,1\n"});
  ExpectError(ErrorCode::kConfig, HasSubstr("cannot be combined with another rule"),
              [&] { both.Import(); });
}

TEST(NumberLabels, NegativesCannotBeLeftOut) {
  Csv csv("columns:\n  y: {role: label, values: number}\n  x: {role: dense}\n", {"y,x\n1,1\n"});
  csv.options.keep_negatives = 0.5;
  ExpectError(ErrorCode::kUsage, HasSubstr("'y' is a number, so that no row is a negative"),
              [&] { csv.Import(); });
  Csv kept(
      "negatives_kept: 0.5\ncolumns:\n  y: {role: label, values: number}\n  x: {role: dense}\n",
      {"y,x\n1,1\n"});
  ExpectError(ErrorCode::kConfig, HasSubstr("the label 'y' is a number, but only 0.5 of the rows"),
              [&] { kept.Import(); });
}

TEST(NumberLabels, AreCheckedWhenTheyAreRead) {
  Csv csv(kRatingsSchema, {kRatedRows});
  csv.Import();
  for (const char* file : {"label.npy", "further_labels.npy"}) {
    const std::string path = csv.options.output + "/shard-00000/" + file;
    const std::string before = ReadFile(path);
    std::string bytes = before;
    const float infinite = std::numeric_limits<float>::infinity();
    // The last value but one of each: in further_labels that of a number.
    const size_t back = (std::strcmp(file, "label.npy") == 0 ? 1 : 2) * sizeof(float);
    std::memcpy(bytes.data() + bytes.size() - back, &infinite, sizeof infinite);
    WriteFileAtomically(path, bytes);
    const Dataset dataset(csv.options.output, {.verify_blocks = false});
    ExpectError(ErrorCode::kData, HasSubstr("is inf, not a number from -1000000000 to 1000000000"),
                [&] { ReadAll(dataset); });
    WriteFileAtomically(path, before);
  }
  testing::RewriteManifest(csv.options.output, "format_version: 8", "format_version: 7");
  ExpectError(ErrorCode::kData, HasSubstr("number_labels"),
              [&] { ReadManifest(csv.options.output); });
}

TEST(NumberLabels, DataOfAnotherRuleAreRefused) {
  Csv training("columns:\n  y: {role: label, values: number}\n  x: {role: dense}\n",
               {"y,x\n1,1\n0,2\n"});
  training.Import();
  Csv test("columns:\n  y: {role: label}\n  x: {role: dense}\n", {"y,x\n1,1\n0,2\n"});
  test.options.vocabulary.clear();
  test.options.vocabulary_from = training.options.output;
  ExpectError(ErrorCode::kConfig, HasSubstr("were mapped by 'values number', here they are by"),
              [&] { test.Import(); });
}

}  // namespace
}  // namespace renzan
