// Columns with role weight, and the data that they become.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "renzan/data/text/csv_schema.h"
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

constexpr char kWeightedSchema[] =
    "columns: {y: {role: label}, w: {role: weight}, x: {role: dense}, c: {role: categorical}}\n";

std::string ImportAndLog(const Csv& csv, ImportSummary* done = nullptr) {
  ::testing::internal::CaptureStderr();
  const ImportSummary summary = csv.Import();
  if (done != nullptr) *done = summary;
  return ::testing::internal::GetCapturedStderr();
}

TEST(ImportCsv, WeightsAreStoredWithTheirSamples) {
  Csv csv(kWeightedSchema, {"y,w,x,c\n1,0.5,1,a\n0,2,2,b\n", "c,x,w,y\na,3,0,0\nb,4,+1.25e0,1\n"});
  csv.options.shard_rows = 3;
  ImportSummary done;
  EXPECT_THAT(ImportAndLog(csv, &done), Not(HasSubstr("weight")));
  EXPECT_EQ(done.weight.name, "w");
  EXPECT_EQ(done.weight.min, 0);
  EXPECT_EQ(done.weight.mean, 3.75 / 4);
  EXPECT_EQ(done.weight.max, 2);
  const Dataset dataset(csv.options.output);
  dataset.Verify();
  EXPECT_EQ(dataset.schema().weight, "w");
  EXPECT_EQ(dataset.manifest().weight.max, 2);
  EXPECT_THAT(dataset.schema().dense, ElementsAre("x"));
  Batch batch;
  const int64_t rows[] = {3, 0, 1, 1, 2};
  dataset.Read(rows, &batch);
  EXPECT_THAT(batch.weight, ElementsAre(1.25f, 0.5f, 2, 2, 0));
  EXPECT_THAT(batch.dense, ElementsAre(4, 1, 2, 2, 3));
}

// Old programs read them, and fingerprints in manifests of runs stay valid.
TEST(ImportCsv, WithoutWeightsNothingIsWritten) {
  const char* const text = "y,w,x,c\n1,1,1,a\n0,1,2,b\n";
  Csv with(kWeightedSchema, {text});
  Csv without(
      "columns: {y: {role: label}, w: {role: skip}, x: {role: dense}, c: {role: categorical}}\n",
      {text});
  const Batch batch = without.Read();
  EXPECT_THAT(batch.weight, IsEmpty());
  EXPECT_THAT(ReadFile(without.options.output + "/dataset.yaml"),
              AllOf(Not(HasSubstr("weight")), Not(HasSubstr("negatives_kept"))));
  // A batch that is reused keeps no old weights.
  Batch reused = with.Read();
  EXPECT_THAT(reused.weight, ElementsAre(1, 1));
  const int64_t rows[] = {0};
  Dataset(without.options.output).Read(rows, &reused);
  EXPECT_THAT(reused.weight, IsEmpty());
  EXPECT_NE(Dataset(with.options.output).fingerprint(),
            Dataset(without.options.output).fingerprint());
}

TEST(ImportCsv, AWeightIsAFiniteNumberFromZeroOn) {
  for (const char* weight : {"-1", "-0.001", "nan", "inf", "1e39", "heavy", "", "NA"}) {
    const std::string rows = fmt::format("y,w,x,c\n1,1,1,a\n0,{},2,b\n1,3,1,a\n", weight);
    Csv csv(std::string("missing: [\"NA\"]\n") + kWeightedSchema, {rows});
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("in0.csv:3: column 2 (w): '"),
                      HasSubstr("is not a weight: it must be a finite number from 0 on; fix the "
                                "row, or skip bad rows with --on-bad-row skip")),
                [&] { csv.Import(); });
    csv.options.skip_bad_rows = true;
    EXPECT_THAT(csv.Read().weight, ElementsAre(1, 3));
  }
}

TEST(ImportCsv, WeightsThatActAsALearningRateAreSaid) {
  const auto log = [](const char* a, const char* b) {
    return ImportAndLog(Csv(kWeightedSchema, {fmt::format("y,w,x,c\n1,{},1,a\n0,{},2,b\n", a, b)}));
  };
  EXPECT_THAT(log("0.5", "1.5"), Not(HasSubstr("weight")));
  EXPECT_THAT(log("50", "150"), HasSubstr("the mean of the weights 'w' is 100: it multiplies all "
                                          "gradients, as a learning rate would"));
  EXPECT_THAT(log("0.001", "0"), HasSubstr("the mean of the weights 'w' is 0.0005"));
  EXPECT_THAT(log("0", "0"), HasSubstr("the weight 'w' is 0 in all rows, from which no model can "
                                       "learn"));
}

// Another day's data is training data, too.
TEST(ImportCsv, WeightsOfAGrowingDatasetAreSaid) {
  const Csv first(kWeightedSchema, {"y,w,x,c\n1,1,1,a\n0,1,2,b\n"});
  first.Import();
  Csv next(kWeightedSchema, {"y,w,x,c\n1,50,1,a\n0,150,2,z\n"});
  next.options.vocabulary.clear();
  next.options.vocabulary_from = first.options.output;
  EXPECT_THAT(ImportAndLog(next), Not(HasSubstr("mean of the weights")));
  next.options.output = next.dir / "grown";
  next.options.grow = true;
  EXPECT_THAT(ImportAndLog(next), HasSubstr("the mean of the weights 'w' is 100"));
}

// Nothing but training and evaluation reads them.
TEST(ImportCsv, DataForPredictionsNeedsNoWeights) {
  const Csv training(kWeightedSchema, {"y,w,x,c\n1,1,1,a\n0,1,2,b\n"});
  training.Import();
  const auto test = [&](const std::vector<std::string>& texts) {
    Csv csv(kWeightedSchema, texts);
    csv.options.vocabulary.clear();
    csv.options.vocabulary_from = training.options.output;
    return csv.Read();
  };
  EXPECT_THAT(test({"x,c\n1,b\n"}).weight, IsEmpty());
  EXPECT_THAT(test({"x,c,y\n1,b,1\n"}).weight, IsEmpty());
  EXPECT_THAT(test({"x,w,c\n1,3,b\n"}).weight, ElementsAre(3));
  ExpectError(ErrorCode::kConfig,
              HasSubstr("in1.csv:1: has the weight 'w', which the first file lacks"), [&] {
                test({"x,c\n1,b\n", "x,w,c\n1,3,b\n"});
              });
  Csv without(kWeightedSchema, {"y,x,c\n1,1,a\n"});
  ExpectError(ErrorCode::kConfig, HasSubstr("the header has no column 'w'"),
              [&] { without.Import(); });
}

TEST(CsvSchema, AtMostOneColumnHasWeights) {
  const auto read = [](const std::string& schema) {
    TemporaryDirectory dir;
    WriteFileAtomically(dir / "schema.yaml", schema);
    return CsvSchema::ReadFile(dir / "schema.yaml");
  };
  ExpectError(ErrorCode::kConfig, HasSubstr("at most one with role weight, not 2"),
              [&] { read("columns: {y: {role: label}, v: {role: weight}, w: {role: weight}}\n"); });
  ExpectError(ErrorCode::kConfig,
              HasSubstr("has the pattern 'w*' with role weight: name that column"),
              [&] { read("columns: {y: {role: label}, \"w*\": {role: weight}}\n"); });
  ExpectError(ErrorCode::kConfig, HasSubstr("belongs to role dense"),
              [&] { read("columns: {y: {role: label}, w: {role: weight, transform: log}}\n"); });
}

}  // namespace
}  // namespace renzan
