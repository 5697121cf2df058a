// Several labels, of which rows may lack all but the first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;

const char kLabelsSchema[] =
    "columns:\n"
    "  click: {role: label}\n"
    "  buy: {role: label, values: no/yes, optional: true}\n"
    "  x: {role: dense}\n"
    "  stars: {role: label, at_least: 4}\n";
const char kLabelledRows[] = "stars,x,click,buy\n5,1,1,yes\n3,2,0,\n4,3,1,no\n";

TEST(SeveralLabels, AreKeptInTheOrderOfTheSchema) {
  Csv csv(kLabelsSchema, {kLabelledRows});
  const ImportSummary summary = csv.Import();
  EXPECT_EQ(summary.label_name, "click");
  ASSERT_EQ(summary.further_labels.size(), 2u);
  EXPECT_EQ(summary.further_labels[0].name, "buy");
  EXPECT_EQ(summary.further_labels[0].rows, 2);
  EXPECT_EQ(summary.further_labels[0].positive_rows, 1);
  EXPECT_EQ(summary.further_labels[1].positive_rows, 2);
  const Dataset dataset(csv.options.output);
  dataset.Verify();
  EXPECT_EQ(dataset.manifest().format_version, kLabelsAndVectorsFormatVersion);
  EXPECT_THAT(dataset.schema().label_names(), ElementsAre("click", "buy", "stars"));
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.labels(0), ElementsAre(1, 0, 1));
  EXPECT_EQ(batch.labels(1)[0], 1);
  EXPECT_TRUE(std::isnan(batch.labels(1)[1]));
  EXPECT_EQ(batch.labels(1)[2], 0);
  EXPECT_THAT(batch.labels(2), ElementsAre(1, 0, 1));
}

TEST(SeveralLabels, OnlyOptionalOnesMayBeMissing) {
  Csv missing(kLabelsSchema, {"stars,x,click,buy\n,1,1,yes\n"});
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("column 1 (stars): '' is not a label"),
                    HasSubstr("'optional: true' in the schema allows rows without this label")),
              [&] { missing.Import(); });
  Csv wrong(kLabelsSchema, {"stars,x,click,buy\n5,1,1,maybe\n"});
  ExpectError(ErrorCode::kData, HasSubstr("'maybe' is neither no nor yes"),
              [&] { wrong.Import(); });
}

TEST(SeveralLabels, AreCheckedWhenTheyAreRead) {
  Csv csv(kLabelsSchema, {kLabelledRows});
  csv.Import();
  const std::string path = csv.options.output + "/shard-00000/further_labels.npy";
  std::string bytes = ReadFile(path);
  const float half = 0.5f;
  std::memcpy(bytes.data() + bytes.size() - sizeof half, &half, sizeof half);
  WriteFileAtomically(path, bytes);
  const Dataset dataset(csv.options.output, {.verify_blocks = false});
  ExpectError(ErrorCode::kData, HasSubstr("'stars' is 0.5, not 0 or 1"), [&] { ReadAll(dataset); });
}

TEST(SeveralLabels, DataOfAnotherRuleAreRefused) {
  const Csv training(kLabelsSchema, {kLabelledRows});
  training.Import();
  std::string schema = kLabelsSchema;
  schema.replace(schema.find("at_least: 4"), 11, "at_least: 5");
  Csv other(schema, {kLabelledRows});
  other.options.vocabulary.clear();
  other.options.vocabulary_from = training.options.output;
  ExpectError(ErrorCode::kConfig, HasSubstr("mapped by 'at_least 4', here it is by 'at_least 5'"),
              [&] { other.Import(); });
}

}  // namespace
}  // namespace renzan
