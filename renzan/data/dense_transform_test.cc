#include "renzan/data/dense_transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dense_spread.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NamesIn;
using ::testing::Not;
using testing::ReadAll;
using testing::WriteText;

DenseTransform Of(const std::string& text) {
  const auto transform = DenseTransform::Parse(text);
  EXPECT_TRUE(transform.has_value()) << text;
  return transform.value_or(DenseTransform());
}

DenseTransform Fitted(const std::string& text, const std::vector<double>& values) {
  DenseFit fit(Of(text));
  for (const double value : values) fit.Add(value);
  return fit.Finish();
}

TEST(DenseTransform, TextReadsBackToTheSameTransform) {
  for (const char* text : {"none",
                           "log",
                           "standardize",
                           "standardize:1.5:0.1",
                           "minmax",
                           "minmax:-3:1e+30",
                           "buckets:32",
                           "buckets:4:1:2.5:7",
                           "buckets:2:-",
                           "clip:0:100,none",
                           "clip:-inf:5,log",
                           "clip:0:inf,standardize:3:4",
                           "clip:0:1,buckets:8",
                           "fill:-1,none",
                           "fill:1.5,clip:0:9,log",
                           "fill:mean,log",
                           "fill:mean:2.5,log",
                           "fill:mean:2.5,standardize:2.5:1",
                           "fill:mean,clip:0:1,buckets:8",
                           "fill:7,minmax"})
    EXPECT_EQ(Of(text).text(), text);
  EXPECT_EQ(Of("clip:0:100,buckets:4:1:2.5:7").kind(), "clip:0:100,buckets:4");
  EXPECT_EQ(Of("standardize:1:2").kind(), "standardize");
  EXPECT_EQ(Of("fill:mean:3,clip:0:4,log").kind(), "fill:mean,clip:0:4,log");
  EXPECT_EQ(Of("fill:3,standardize:1:2").kind(), "fill:3,standardize");
  EXPECT_TRUE(Of("fill:mean,none").needs_constants());
  EXPECT_FALSE(Of("fill:mean:3,none").needs_constants());
  EXPECT_TRUE(Of("buckets:4").needs_constants());
  EXPECT_FALSE(Of("buckets:4:-").needs_constants());
  for (const char* text : {"",
                           "nothing",
                           "log:1",
                           "standardize:1",
                           "standardize:1:-1",
                           "standardize:nan:1",
                           "minmax:2:1",
                           "buckets",
                           "buckets:1",
                           "buckets:4:2:1",
                           "buckets:2:1:2",
                           "clip:1:0,none",
                           "clip:0:1",
                           "clip:0,none",
                           "standardize:1:2:3",
                           "buckets:4:x",
                           "fill:mean",
                           "fill:x,log",
                           "fill:,log",
                           "fill:inf,log",
                           "fill:1e39,none",
                           "fill:mean:,log",
                           "fill:means,log",
                           "fill:mean,standardize:1:2",
                           "fill:mean:1,standardize",
                           "clip:0:1,fill:1,log"})
    EXPECT_FALSE(DenseTransform::Parse(text).has_value()) << text;
}

TEST(DenseTransform, StandardizesEvenTimestamps) {
  // Their squares have more digits than a double.
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(1.7e9 + i % 2);
  const DenseTransform transform = Fitted("standardize", values);
  EXPECT_EQ(transform.text(), "standardize:1700000000.5:0.5");
  EXPECT_EQ(transform.Apply(1.7e9), -1.0f);
  EXPECT_EQ(transform.Apply(1.7e9 + 1), 1.0f);
  // Nothing can be divided by the spread of a constant column.
  EXPECT_EQ(Fitted("standardize", {7, 7}).Apply(9), 0.0f);
  EXPECT_EQ(Fitted("standardize", {}).Apply(9), 0.0f);
}

TEST(DenseTransform, MinmaxAndClip) {
  const DenseTransform transform = Fitted("minmax", {5, 3, 11});
  EXPECT_EQ(transform.text(), "minmax:3:11");
  EXPECT_EQ(transform.Apply(3), 0.0f);
  EXPECT_EQ(transform.Apply(7), 0.5f);
  EXPECT_EQ(transform.Apply(19), 2.0f);  // outside the training data
  EXPECT_EQ(Fitted("minmax", {4, 4}).Apply(5), 0.0f);
  const DenseTransform clipped = Fitted("clip:0:10,minmax", {-5, 1e9, 2});
  EXPECT_EQ(clipped.text(), "clip:0:10,minmax:0:10");
  EXPECT_EQ(clipped.Apply(1e12), 1.0f);
  EXPECT_EQ(Of("clip:-inf:3,none").Apply(-1e9), -1e9f);
  EXPECT_EQ(Of("clip:0:inf,log").Apply(-4), 0.0f);
}

TEST(DenseTransform, BucketsHoldAsManyValuesEach) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::exp(i * 7919 % 1000 / 100.0));
  const DenseTransform transform = Fitted("buckets:4", values);
  std::map<float, int> counts;
  for (const double value : values) ++counts[transform.Apply(value)];
  ASSERT_EQ(counts.size(), 4U);
  for (const auto& [value, count] : counts) EXPECT_EQ(count, 250) << value;
  EXPECT_EQ(transform.Apply(-1e9), 0.0f);
  EXPECT_EQ(transform.Apply(1e9), 1.0f);
  // Repeated values share a bucket.
  EXPECT_EQ(Fitted("buckets:4", {0, 0, 0, 0, 0, 0, 0, 1}).text(), "buckets:4:-");
  EXPECT_EQ(Fitted("buckets:4", {0, 0, 0, 1, 1, 1, 1, 2}).text(), "buckets:4:1");
}

TEST(DenseTransform, BucketsOfMoreValuesThanAreKeptAreClose) {
  std::vector<double> values;
  for (uint64_t i = 0; i < 400'000; ++i) values.push_back(i);  // sorted: a prefix would be wrong
  const DenseTransform transform = Fitted("buckets:10", values);
  EXPECT_EQ(transform.text(), Fitted("buckets:10", values).text());
  std::map<float, int> counts;
  for (const double value : values) ++counts[transform.Apply(value)];
  ASSERT_EQ(counts.size(), 10U);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 40'000, 2'000) << value;
}

TEST(DenseSpread, SaysWhichFeaturesCannotBeTrainedOn) {
  const std::vector<std::string> names = {"time", "income", "age", "fixed", "tiny", "zero"};
  DenseSpread spread(names.size());
  for (int i = 0; i < 1000; ++i) {
    const auto x = static_cast<float>(i);
    spread.Add(std::vector<float>{1e9f + 1000 * x, i == 0 ? 1e5f : 0.0f, 20 + x / 20, 3.0f,
                                  x * 1e-7f, 0.0f});
  }
  const std::string advice = spread.Advice(names);
  EXPECT_THAT(advice, HasSubstr("'time' (about 1e+09: transform: standardize)"));
  EXPECT_THAT(advice, HasSubstr("'income' (about 3.2e+03: transform: log)"));
  EXPECT_THAT(advice, HasSubstr("'fixed' (3 in every row: role: skip)"));
  EXPECT_THAT(advice, HasSubstr("'tiny' (differs by 3e-05: transform: standardize)"));
  EXPECT_THAT(advice, Not(HasSubstr("'age'")));
  EXPECT_THAT(advice, Not(HasSubstr("'zero'")));
  EXPECT_EQ(spread.TooLarge(names), "'time' (about 1e+09: transform: standardize)");
  EXPECT_EQ(DenseSpread(1).TooLarge(std::vector<std::string>{"none"}), "");
  EXPECT_EQ(DenseSpread(0).TooLarge({}), "");
  EXPECT_EQ(DenseSpread(1).Advice(std::vector<std::string>{"none"}), "");
}

// Its numbers are one column of the input.
TEST(DenseSpread, ReportsAVectorOnce) {
  const std::vector<std::string> names = {"a",   "text.0",  "text.1",  "text.2", "fixed.0",
                                          "b.0", "large.0", "large.1", "last"};
  const std::vector<DenseVector> vectors = {{.name = "text", .first = 1, .dimension = 3},
                                            {.name = "fixed", .first = 4, .dimension = 1},
                                            {.name = "b", .first = 5, .dimension = 1},
                                            {.name = "large", .first = 6, .dimension = 2}};
  DenseSpread spread(names.size());
  for (int i = 0; i < 1000; ++i) {
    const auto x = static_cast<float>(i % 2);
    spread.Add(std::vector<float>{x, x, 3, 1e-6f * x, 2, x, -1e4f, x, 5});
  }
  const std::string advice = spread.Advice(names, vectors);
  EXPECT_THAT(
      advice,
      HasSubstr("are: 'text' (2 of the vector's 3 numbers: transform: standardize), 'fixed' "
                "(a vector, the same in every row: role: skip), 'large' (1 of the vector's "
                "2 numbers, the largest about 1e+04: transform: standardize), 'last' (5 in "
                "every row: role: skip). Import"));
}

constexpr char kDenseSchema[] = R"(
missing: ["?"]
columns:
  y: {role: label}
  plain: {role: dense}
  s: {role: dense, transform: standardize}
  c: {role: categorical}
  m: {role: dense, transform: minmax, clip: [0, 10]}
  b: {role: dense, transform: buckets, buckets: 2}
)";

ImportOptions DenseOptions(const TemporaryDirectory& dir, const std::string& schema,
                           const std::string& text, const std::string& name) {
  WriteFileAtomically(dir / (name + ".yaml"), schema);
  WriteText(dir / (name + ".csv"), text);
  ImportOptions options;
  options.inputs = {dir / (name + ".csv")};
  options.format = "csv";
  options.schema = dir / (name + ".yaml");
  options.output = dir / name;
  return options;
}

TEST(ImportDense, ConstantsAreOfTheTrainingDataAndRecorded) {
  TemporaryDirectory dir;
  const std::string text =
      "y,plain,s,c,m,b\n1,1,10,u,0,1\n0,2,30,v,99,2\n1,3,?,u,5,3\n0,4,20,w,-4,4\n0,5,20,v,?,?\n";
  for (const char* vocabulary : {"hash:100", "threshold:1"}) {
    // Several shards, with and without ids that are mapped at the end too.
    ImportOptions options =
        DenseOptions(dir, kDenseSchema, text, fmt::format("train{}", vocabulary[0]));
    options.vocabulary = {vocabulary};
    options.shard_rows = 2;
    ImportDataset(options);
    const Dataset train(options.output);
    train.Verify();
    EXPECT_THAT(NamesIn(options.output + "/shard-00000"),
                ElementsAre("checksums.npy", "dense.npy", "ids.npy", "label.npy"));
    const float d = std::sqrt(2.0f);
    const Batch batch = ReadAll(train);
    EXPECT_THAT(batch.dense,
                ::testing::Pointwise(::testing::FloatEq(),
                                     {1.0f, -d,   0.0f, 0.0f, 2.0f, d,    1.0f, 0.0f, 3.0f, 0.0f,
                                      0.5f, 1.0f, 4.0f, 0.0f, 0.0f, 1.0f, 5.0f, 0.0f, 0.0f, 0.0f}));
    const std::vector<std::string>& transforms = train.schema().dense_transforms;
    EXPECT_EQ(transforms[0], "none");
    EXPECT_THAT(transforms[1], HasSubstr("standardize:20:7.07106"));
    EXPECT_EQ(transforms[2], "clip:0:10,minmax:0:10");
    EXPECT_EQ(transforms[3], "buckets:2:3");

    // A test set has the same constants, not those of its own values.
    ImportOptions test =
        DenseOptions(dir, kDenseSchema, "y,plain,s,c,m,b\n1,7,40,u,2,9\n0,8,?,z,2,0\n",
                     fmt::format("test{}", vocabulary[0]));
    test.vocabulary_from = options.output;
    ImportDataset(test);
    const Dataset tested(test.output);
    tested.Verify();
    EXPECT_EQ(tested.schema().dense_transforms, transforms);
    EXPECT_THAT(ReadAll(tested).dense,
                ::testing::Pointwise(::testing::FloatEq(),
                                     {7.0f, 2 * d, 0.2f, 1.0f, 8.0f, 0.0f, 0.2f, 0.0f}));
  }
  std::string other = kDenseSchema;
  other.replace(other.find("standardize"), 11, "minmax");
  ImportOptions options = DenseOptions(dir, other, text, "other");
  options.vocabulary_from = dir / "trainh";
  ExpectError(ErrorCode::kConfig,
              AllOf(HasSubstr("'s' was imported into"),
                    HasSubstr("with transform standardize, here it is minmax")),
              [&] { ImportDataset(options); });
}

// `fill` says what a missing value stands for, in the input's units; without it, 0 stays what it
// was: after the transform.
TEST(DenseTransform, FillsWithAValueThatIsNeutral) {
  EXPECT_EQ(Fitted("fill:mean,none", {1, 2, 6}).OfMissing(), 3);
  EXPECT_EQ(Fitted("fill:mean,standardize", {1, 2, 6}).OfMissing(), 0);
  EXPECT_EQ(Fitted("fill:mean,clip:0:4,minmax", {0, 2, 99}).OfMissing(), 0.5f);
  EXPECT_EQ(Fitted("fill:mean,buckets:4", {1, 2, 3, 100}).text(), "fill:mean:3,buckets:4:2:3:100");
  EXPECT_FLOAT_EQ(Fitted("fill:mean,log", {std::expm1(1), std::expm1(9), -5}).OfMissing(),
                  10.0f / 3);
  EXPECT_EQ(Fitted("fill:mean,none", {}).OfMissing(), 0);
  EXPECT_EQ(Fitted("fill:mean,buckets:4", {}).text(), "fill:mean:0,buckets:4:-");
  EXPECT_EQ(Of("log").OfMissing(), 0);
}

TEST(ImportDense, MissingValuesAreFilled) {
  TemporaryDirectory dir;
  const auto schema_of = [](const char* fill) {
    return fmt::format(
        "columns:\n  y: {{role: label}}\n  l: {{role: dense, transform: log{0}}}\n"
        "  n: {{role: dense{0}}}\n  s: {{role: dense, transform: standardize{0}}}\n"
        "  c: {{role: dense, transform: minmax, clip: [0, 10]{0}}}\n",
        fill);
  };
  const std::string text = "y,l,n,s,c\n1,1,1,1,0\n0,,,,\n1,3,3,3,99\n";
  const auto import = [&](const char* fill, const std::string& name, const std::string& from) {
    ImportOptions options = DenseOptions(dir, schema_of(fill), text, name);
    if (!from.empty()) options.vocabulary_from = dir / from;
    options.shard_rows = 2;
    ImportDataset(options);
    const Dataset dataset(options.output);
    dataset.Verify();
    const std::vector<float> dense = ReadAll(dataset).dense;
    return std::vector<float>(dense.begin() + 4, dense.begin() + 8);  // of the second row
  };
  EXPECT_THAT(import("", "zero", ""), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(ReadManifest(dir / "zero").dense_transforms[0], "log");
  // The mean of log 2 and log 4, which is that of 1.83, not of the mean 2.
  const float mean = 1.5f * std::log(2.0f), log6 = std::log(6.0f);
  EXPECT_THAT(import(", fill: mean", "mean", ""),
              ElementsAre(::testing::FloatEq(mean), 2, 0, 0.5f));
  EXPECT_THAT(ReadManifest(dir / "mean").dense_transforms,
              ElementsAre(::testing::MatchesRegex("fill:mean:1.828.*,log"), "fill:mean:2,none",
                          "fill:mean:2,standardize:2:1", "fill:mean:5,clip:0:10,minmax:0:10"));
  EXPECT_THAT(import(", fill: 5", "five", ""), ElementsAre(log6, 5, 3, 0.5f));
  // A test set has the training data's mean, whatever its own is.
  EXPECT_THAT(import(", fill: 5.0", "five again", "five"), ElementsAre(log6, 5, 3, 0.5f));
  ImportOptions test =
      DenseOptions(dir, schema_of(", fill: mean"), "y,l,n,s,c\n1,9,9,9,9\n1,,,,\n", "test");
  test.vocabulary_from = dir / "mean";
  ImportDataset(test);
  const std::vector<float> dense = ReadAll(Dataset(dir / "test")).dense;
  EXPECT_THAT(std::vector<float>(dense.begin() + 4, dense.end()),
              ElementsAre(::testing::FloatEq(mean), 2, 0, 0.5f));
  ExpectError(ErrorCode::kConfig,
              HasSubstr("with transform fill:mean,log, here it is log: use the same (--dense, or "
                        "'transform', 'clip' and 'fill' in the schema)"),
              [&] { import("", "other", "mean"); });
}

TEST(ImportDense, WrongKeys) {
  TemporaryDirectory dir;
  const struct {
    const char *column, *message;
  } kCases[] = {
      {"role: dense, transform: scale", "transform cannot be 'scale'"},
      {"role: dense, buckets: 8", "buckets belongs to transform buckets"},
      {"role: dense, transform: buckets, buckets: 1", "buckets must be between 2 and 1024"},
      {"role: dense, clip: [3, 1]", "clip must be [lowest, highest]"},
      {"role: dense, clip: [3]", "clip must be [lowest, highest]"},
      {"role: categorical, transform: standardize", "transform belongs to role dense"},
      {"role: categorical, fill: mean", "fill belongs to role dense"},
      {"role: dense, fill: median", "fill must be mean, or the number"},
      {"role: dense, fill: .inf", "fill must be mean, or the number"},
      {"role: categorical, clip: [1, 3]", "clip belongs to role dense"},
  };
  for (const auto& test : kCases)
    ExpectError(ErrorCode::kConfig, HasSubstr(test.message), [&] {
      ImportDataset(DenseOptions(
          dir, fmt::format("columns: {{y: {{role: label}}, x: {{{}}}}}\n", test.column),
          "y,x\n1,2\n", fmt::format("in{}", &test - kCases)));
    });
}

TEST(ImportDense, WarnsOfColumnsThatCannotBeTrainedOn) {
  TemporaryDirectory dir;
  std::string text = "y,ts,age\n";
  for (int row = 0; row < 100; ++row)
    text += fmt::format("{},{},{}\n", row % 2, 1700000000 + row, row % 90);
  const auto import = [&](const char* transform, const char* name) {
    ::testing::internal::CaptureStderr();
    ImportDataset(
        DenseOptions(dir,
                     fmt::format("columns: {{y: {{role: label}}, ts: {{role: dense, transform: "
                                 "{}}}, age: {{role: dense}}}}\n",
                                 transform),
                     text, name));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(import("none", "a"), AllOf(HasSubstr("'ts' (about 1.7e+09: transform: standardize)"),
                                         Not(HasSubstr("age"))));
  EXPECT_THAT(import("standardize", "b"), IsEmpty());
  EXPECT_THAT(import("buckets", "c"), IsEmpty());
}

}  // namespace
}  // namespace renzan
