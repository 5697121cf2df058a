// Several labels, of which rows may lack any, but not all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/inspect.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsNan;
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

// Labels all of which rows may lack.
const char kOptionalSchema[] =
    "columns:\n"
    "  click: {role: label, optional: true, missing: [\"-\"]}\n"
    "  stars: {role: label, values: number, optional: true}\n"
    "  x: {role: dense}\n"
    "  c: {role: categorical}\n";
const char kPartlyLabelledRows[] = "click,stars,x,c\n,3,1,a\n1,,2,a\n-,5,3,b\n0,1,4,a\n1,,5,c\n";

TEST(SeveralLabels, TheFirstMayBeMissing) {
  Csv csv(kOptionalSchema, {kPartlyLabelledRows});
  const ImportSummary summary = csv.Import();
  EXPECT_EQ(summary.label.rows, 3);
  EXPECT_EQ(summary.label.missing_rows, 2);
  EXPECT_EQ(summary.label.positive_rows, 2);
  EXPECT_FALSE(summary.label.has_one_value());
  EXPECT_EQ(Describe(summary.further_labels[0]), "label 'stars': mean 3, from 1 to 5 in 3 rows");
  const Dataset dataset(csv.options.output);
  dataset.Verify();
  const DatasetManifest& manifest = dataset.manifest();
  EXPECT_EQ(manifest.format_version, kOptionalLabelFormatVersion);
  EXPECT_EQ(manifest.labelled_rows, 3);
  EXPECT_EQ(manifest.positive_rows, 2);
  EXPECT_FALSE(manifest.HasOneValue("click"));
  EXPECT_TRUE(dataset.schema().first_label().optional);
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.labels(0), ElementsAre(IsNan(), 1, IsNan(), 0, 1));
  EXPECT_THAT(batch.labels(1), ElementsAre(3, IsNan(), 5, 1, IsNan()));

  const DatasetSummary inspected = InspectDataset(dataset, 3);
  EXPECT_EQ(inspected.label_mean, 2.0 / 3);
  const std::vector<TopValue>& top = inspected.features[1].top;
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].label_mean, 0.5);        // a: 1, 0 and one without a click
  EXPECT_THAT(top[1].label_mean, IsNan());  // b: none has one
  EXPECT_EQ(top[2].label_mean, 1);          // c

  testing::RewriteManifest(csv.options.output, "format_version: 10", "format_version: 9");
  ExpectError(ErrorCode::kData, HasSubstr("label_optional"),
              [&] { ReadManifest(csv.options.output); });
}

TEST(SeveralLabels, ALabelThatIsTheSameWhereItIsKnownIsTold) {
  Csv csv(kOptionalSchema, {"click,stars,x,c\n,3,1,a\n1,,2,a\n1,4,3,b\n"});
  const ImportSummary summary = csv.Import();
  EXPECT_TRUE(summary.label.has_one_value());
  EXPECT_TRUE(ReadManifest(csv.options.output).HasOneValue("click"));
  EXPECT_FALSE(ReadManifest(csv.options.output).HasOneValue("stars"));
}

TEST(SeveralLabels, ARowWithNoneIsBad) {
  Csv csv(kOptionalSchema, {"click,stars,x,c\n1,,1,a\n-,,2,b\n,4,3,a\n0,,3,a\n"});
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("in0.csv:3: has none of the labels click, stars"),
                    HasSubstr("--on-bad-row skip")),
              [&] { csv.Import(); });
  csv.options.skip_bad_rows = true;
  EXPECT_EQ(csv.Import().bad_rows, 1);
  EXPECT_THAT(ReadAll(Dataset(csv.options.output)).labels(0), ElementsAre(1, IsNan(), 0));
}

// Data for predictions may lack a label's column: then the first is the only one.
TEST(SeveralLabels, TheLastOneCannotBeMissing) {
  const Csv training(kOptionalSchema, {kPartlyLabelledRows});
  training.Import();
  Csv one(kOptionalSchema, {"click,x,c\n1,1,a\n,2,a\n"});
  one.options.vocabulary.clear();
  one.options.vocabulary_from = training.options.output;
  ExpectError(ErrorCode::kData, HasSubstr("in0.csv:3: has none of the labels click"),
              [&] { one.Import(); });
  ExpectError(ErrorCode::kData, HasSubstr("must not have the labels' columns: leave them out"),
              [&] { one.Import(); });
  one.options.skip_bad_rows = true;
  one.Import();
  EXPECT_LT(ReadManifest(one.options.output).format_version, kOptionalLabelFormatVersion);
}

// `optional: true` would be of no help.
TEST(SeveralLabels, AnEmptyFirstLabelOfPredictionsIsToBeLeftOut) {
  const Csv training(kLabelsSchema, {kLabelledRows});
  training.Import();
  Csv empty(kLabelsSchema, {"stars,x,click,buy\n5,1,,yes\n"});
  empty.options.vocabulary.clear();
  empty.options.vocabulary_from = training.options.output;
  ExpectError(ErrorCode::kData, HasSubstr("must not have the labels' columns: leave them out"),
              [&] { empty.Import(); });
}

TEST(SeveralLabels, TheFirstIsMissingOnlyWhereTheDatasetSaysSo) {
  Csv csv(kLabelsSchema, {kLabelledRows});
  csv.Import();
  const std::string path = csv.options.output + "/shard-00000/label.npy";
  std::string bytes = ReadFile(path);
  const float missing = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - sizeof missing, &missing, sizeof missing);
  WriteFileAtomically(path, bytes);
  const Dataset dataset(csv.options.output, {.verify_blocks = false});
  ExpectError(ErrorCode::kData, HasSubstr("row 2 (row 2 of"), [&] { ReadAll(dataset); });
  ExpectError(ErrorCode::kData, HasSubstr("'click' is nan, not 0 or 1"), [&] { ReadAll(dataset); });
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
