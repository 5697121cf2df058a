// Data without labels, for predictions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ReadAll;
using testing::WriteText;

const char kUnlabelledSchema[] =
    "columns:\n"
    "  y: {role: label, values: no/yes}\n"
    "  x: {role: dense, transform: minmax}\n"
    "  c: {role: categorical}\n"
    "  g: {role: multi_hot}\n";
const char kTraining[] = "y,x,c,g\nyes,10,a,p|q\nno,20,b,\nyes,30,a,q\n";

// Of `training`, with another schema if `schema` is not empty.
struct TestSet : Csv {
  TestSet(const Csv& training, const std::string& schema, const std::vector<std::string>& texts)
      : Csv(schema.empty() ? kUnlabelledSchema : schema, texts) {
    options.vocabulary.clear();
    options.vocabulary_from = training.options.output;
  }
};

void ExpectTheTrainingRowsWithoutLabels(const Csv& test) {
  const ImportSummary summary = test.Import();
  EXPECT_EQ(summary.label_name, "");
  const DatasetManifest manifest = ReadManifest(test.options.output);
  EXPECT_EQ(manifest.format_version, kUnlabelledFormatVersion);
  EXPECT_EQ(manifest.label, "");
  EXPECT_EQ(manifest.label_rule, "");
  EXPECT_EQ(manifest.positive_rows, -1);
  EXPECT_FALSE(manifest.HasOneValue(""));
  EXPECT_FALSE(manifest.parsing.contains("y"));
  EXPECT_FALSE(FileExists(test.options.output + "/shard-00000/label.npy"));
  const Dataset dataset(test.options.output);
  dataset.Verify();
  EXPECT_FALSE(dataset.schema().has_labels());
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.label, IsEmpty());
  EXPECT_THAT(batch.dense, ElementsAre(0.0f, 0.5f, 1.0f));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 2));
  EXPECT_THAT(batch.categorical[1].offsets, ElementsAre(0, 2, 2, 3));
}

TEST(Unlabelled, AFileWithoutTheLabelsColumn) {
  Csv training(kUnlabelledSchema, {kTraining});
  training.options.unseen = {"0"};
  training.Import();
  ExpectTheTrainingRowsWithoutLabels(
      TestSet(training, "", {"c,x,g\na,10,p|q\nb,20,\n", "x,g,c\n30,q,a\n"}));
}

TEST(Unlabelled, ASchemaWithoutALabel) {
  Csv training(kUnlabelledSchema, {kTraining});
  training.options.unseen = {"0"};
  training.Import();
  const std::string columns =
      std::string(kUnlabelledSchema).erase(9, std::string(kUnlabelledSchema).find("  x:") - 9);
  ExpectTheTrainingRowsWithoutLabels(
      TestSet(training, columns, {"x,c,g\n10,a,p|q\n20,b,\n30,a,q\n"}));
  ExpectTheTrainingRowsWithoutLabels(
      TestSet(training, "header: false\n" + columns, {"10,a,p|q\n20,b,\n30,a,q\n"}));
}

TEST(Unlabelled, CriteosTestFile) {
  TemporaryDirectory dir;
  const std::string rest = "5" + std::string(13, '\t') + "68fd1e64" + std::string(25, '\t') + "\n";
  WriteText(dir / "train.txt", "1\t" + rest + "0\t" + rest);
  WriteText(dir / "test.txt", rest + rest + "bad\n" + rest);
  ImportOptions options{.inputs = {dir / "train.txt"}, .output = dir / "train"};
  options.vocabulary = {"hash:100"};
  ImportDataset(options);
  ImportOptions test{.inputs = {dir / "test.txt"}, .output = dir / "test"};
  test.vocabulary_from = dir / "train";
  ExpectError(ErrorCode::kData, HasSubstr("test.txt:3: 1 column separated by tabs instead of 39"),
              [&] { ImportDataset(test); });
  test.skip_bad_rows = true;
  EXPECT_EQ(ImportDataset(test).rows, 3);
  const Batch batch = ReadAll(Dataset(dir / "test")), train = ReadAll(Dataset(dir / "train"));
  EXPECT_THAT(batch.label, IsEmpty());
  EXPECT_EQ(batch.dense[0], train.dense[0]);
  EXPECT_EQ(batch.categorical[0].values[2], train.categorical[0].values[0]);

  // Fields are numbered as they are in the file.
  WriteText(dir / "bad.txt", "x" + rest);
  test.inputs = {dir / "bad.txt"};
  test.skip_bad_rows = false;
  test.output = dir / "other";
  ExpectError(ErrorCode::kData, HasSubstr("bad.txt:1: column 1 (I1): 'x5'"),
              [&] { ImportDataset(test); });
}

TEST(Unlabelled, AnEmptyLabelsColumnIsToBeLeftOut) {
  Csv training(kUnlabelledSchema, {kTraining});
  training.options.unseen = {"0"};
  training.Import();
  const char kEmpty[] = "y,x,c,g\n,10,a,p|q\n,20,b,\n,30,a,q\n";
  const char kAdvice[] = "data for predictions must not have the label's column: leave it out";
  TestSet test(training, "", {kEmpty});
  ExpectError(ErrorCode::kData,
              HasSubstr("'' is not a label: it is missing; " +
                        (kAdvice + std::string("; otherwise fix the row"))),
              [&] { test.Import(); });
  test.options.skip_bad_rows = true;
  ::testing::internal::CaptureStderr();
  ExpectError(ErrorCode::kData, AllOf(HasSubstr("no valid rows"), HasSubstr(kAdvice)),
              [&] { test.Import(); });
  // Once, not in each row.
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("in0.csv:4: column 1 (y): '' is not a label"));
  EXPECT_EQ(log.find(kAdvice), log.rfind(kAdvice)) << log;
  // Training data has them.
  const Csv unlabelled(kUnlabelledSchema, {kEmpty});
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("it is missing; fix the row"), Not(HasSubstr(kAdvice))),
              [&] { unlabelled.Import(); });

  TemporaryDirectory dir;
  const std::string rest = std::string(39, '\t') + "\n";
  WriteText(dir / "train.txt", "1" + rest + "0" + rest);
  WriteText(dir / "test.txt", rest);
  ImportDataset({.inputs = {dir / "train.txt"}, .output = dir / "train"});
  ImportOptions criteo{.inputs = {dir / "test.txt"}, .output = dir / "test"};
  criteo.vocabulary_from = dir / "train";
  ExpectError(ErrorCode::kData, HasSubstr(kAdvice), [&] { ImportDataset(criteo); });
}

// Training data that lacks its label is a mistake.
TEST(Unlabelled, OnlyBesideTrainingData) {
  const Csv csv(kUnlabelledSchema, {"x,c,g\n10,a,p|q\n"});
  ExpectError(ErrorCode::kConfig,
              HasSubstr("in0.csv:1: the header has no column 'y', which " + csv.options.schema +
                        " declares; data without labels, for `renzan predict`, needs "
                        "--vocabulary-from TRAINING_DATA"),
              [&] { csv.Import(); });
}

// So is another day's training data.
TEST(Unlabelled, NotWhereTheVocabularyGrows) {
  const Csv training(kUnlabelledSchema, {kTraining});
  training.Import();
  TestSet next_day(training, "", {"x,c,g\n10,z,p|q\n"});
  next_day.options.grow = true;
  ExpectError(ErrorCode::kConfig, HasSubstr("needs --vocabulary-from TRAINING_DATA without --grow"),
              [&] { next_day.Import(); });
  EXPECT_FALSE(FileExists(next_day.options.output));
}

TEST(Unlabelled, HoldsNoShareOfNegatives) {
  const std::string schema = std::string("negatives_kept: 0.1\n") + kUnlabelledSchema;
  const Csv training(schema, {kTraining});
  EXPECT_EQ(training.Import().negatives_kept, 0.1);
  const TestSet test(training, schema, {"x,c,g\n10,a,p|q\n"});
  EXPECT_EQ(test.Import().negatives_kept, 1);
  EXPECT_EQ(Dataset(test.options.output).schema().negatives_kept, 1);
}

TEST(Unlabelled, FilesWithAndWithoutLabelsDoNotMix) {
  const Csv training(kUnlabelledSchema, {kTraining});
  training.Import();
  ExpectError(ErrorCode::kConfig,
              HasSubstr("in1.csv:1: has the label 'y', which the first file lacks"), [&] {
                TestSet(training, "", {"x,c,g\n10,a,p\n", kTraining}).Import();
              });
  ExpectError(ErrorCode::kConfig,
              HasSubstr("in1.csv:1: lacks the label 'y', which the first file has"), [&] {
                TestSet(training, "", {kTraining, "x,c,g\n10,a,p\n"}).Import();
              });
  // Labels that are there are kept.
  EXPECT_EQ(TestSet(training, "", {kTraining}).Read().label.size(), 3u);
}

TEST(Unlabelled, InspectCountsFeatures) {
  const Csv training(kUnlabelledSchema, {kTraining});
  training.Import();
  const TestSet test(training, "", {"x,c,g\n10,a,p|q\n20,a,\n"});
  test.Import();
  const DatasetSummary summary = InspectDataset(Dataset(test.options.output), 3);
  EXPECT_EQ(summary.rows, 2);
  EXPECT_EQ(summary.features[1].top[0].count, 2);
  EXPECT_EQ(summary.features[2].missing, 1);
}

// Programs that know no such data refuse it by its version.
TEST(Unlabelled, TheNameOfTheLabelMayBeEmptyOnlyInItsVersion) {
  const Csv training(kUnlabelledSchema, {kTraining});
  training.Import();
  const TestSet test(training, "", {"x,c,g\n10,a,p|q\n"});
  test.Import();
  testing::RewriteManifest(test.options.output, "format_version: 4", "format_version: 2");
  ExpectError(ErrorCode::kData, HasSubstr("label is empty"),
              [&] { Dataset dataset(test.options.output); });
}

}  // namespace
}  // namespace renzan
