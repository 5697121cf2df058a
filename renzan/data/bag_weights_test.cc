// Bags whose values have weights, another column of the input, and the data that they become.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::ReadAll;

constexpr char kBagsSchema[] =
    "columns: {y: {role: label}, tags: {role: multi_hot, missing: [\"-\"]}, relevance: {role: "
    "bag_weights, bag: tags}, other: {role: multi_hot}}\n";

TEST(ImportBagWeights, AreStoredWithTheirValues) {
  Csv csv(kBagsSchema, {"y,tags,relevance,other\n1,a|b|c,0.5|2|1,x|y\n0,,,z\n1,b,-1.5e0,\n",
                        "relevance,other,tags,y\n3|0,x,c|a,0\n"});
  csv.options.shard_rows = 3;
  Batch batch = csv.Read();
  ASSERT_EQ(batch.categorical.size(), 2);
  EXPECT_THAT(batch.categorical[0].offsets, ElementsAre(0, 3, 3, 4, 6));
  EXPECT_THAT(batch.categorical[0].weights, ElementsAre(0.5f, 2, 1, -1.5f, 3, 0));
  EXPECT_THAT(batch.categorical[1].weights, IsEmpty());
  const Dataset dataset(csv.options.output);
  EXPECT_EQ(dataset.schema().categorical[0].weights, "relevance");
  EXPECT_EQ(dataset.schema().categorical[0].min_weight, -1.5);
  const WeightSummary& all = dataset.manifest().features.at("tags").weights;
  EXPECT_EQ(all.name, "relevance");
  EXPECT_EQ(all.mean, 5.0 / 6);
  EXPECT_EQ(all.max, 3);
  EXPECT_EQ(dataset.manifest().format_version, 9);
  EXPECT_THAT(ReadFile(csv.options.output + "/dataset.yaml"), HasSubstr("tags.weights.npy"));
  const int64_t rows[] = {3, 0};
  dataset.Read(rows, &batch);
  EXPECT_THAT(batch.categorical[0].weights, ElementsAre(3, 0, 0.5f, 2, 1));
}

// Their values' ids are known only at the end, and may be dropped from the bag before.
TEST(ImportBagWeights, AreDroppedWithTheirValues) {
  Csv csv(kBagsSchema,
          {"y,tags,relevance,other\n1,a||-|b,1|2|3|4,\n0,-,7,\n1,-,,\n0,,,\n1,|b,8|9,\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(batch.categorical[0].offsets, ElementsAre(0, 2, 2, 2, 2, 3));
  EXPECT_THAT(batch.categorical[0].weights, ElementsAre(1, 4, 9));
}

TEST(ImportBagWeights, AreWrittenAsTheirBagIs) {
  Csv csv(
      "delimiter: \";\"\ncolumns: {y: {role: label}, w: {role: bag_weights, bag: t}, t: {role: "
      "multi_hot, brackets: true}}\n",
      {"y;w;t\n1;[0.5, 2];['a', 'b']\n0;[];[]\n"});
  EXPECT_THAT(csv.Read().categorical[0].weights, ElementsAre(0.5f, 2));
  Csv empty(
      "delimiter: \";\"\ncolumns: {y: {role: label}, w: {role: bag_weights, bag: t}, t: {role: "
      "multi_hot, brackets: true}}\n",
      {"y;w;t\n1;[0.5];[]\n"});
  ExpectError(ErrorCode::kData, HasSubstr("'t' has 0 values, but 'w' has 1 weight"),
              [&] { empty.Import(); });
  Csv blanks(
      "columns: {y: {role: label}, w: {role: bag_weights, bag: t}, t: {role: multi_hot, separator: "
      "\" \"}}\n",
      {"y,w,t\n1,0.5  2,a b\n0,,\n"});
  EXPECT_THAT(blanks.Read().categorical[0].weights, ElementsAre(0.5f, 2));
}

TEST(ImportBagWeights, BadOnesMakeBadRows) {
  const std::pair<const char*, const char*> rows[] = {
      {"a|b,1", "'tags' has 2 values, but 'relevance' has 1 weight"},
      {"a,1|2", "'tags' has 1 value, but 'relevance' has 2 weights"},
      {"a,", "'tags' has 1 value, but 'relevance' has 0 weights"},
      {",1|2", "'tags' has 0 values, but 'relevance' has 2 weights"},
      {"a|b,1|x",
       "the weight 'x' in 'relevance', at position 1 of the bag, is not a finite number"},
      {"a|b,|1", "the weight '' in 'relevance', at position 0 of the bag, is not a finite number"},
      {"a,nan", "is not a finite number"},
      {"a,inf", "is not a finite number"},
      {"a,1e39", "is not a finite number"}};
  for (const auto& [row, reason] : rows) {
    Csv csv(kBagsSchema, {fmt::format("y,tags,relevance,other\n1,a,1,x\n0,{},z\n1,b,3,x\n", row)});
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("in0.csv:3: column 3 (relevance): "), HasSubstr(reason),
                      HasSubstr("fix the row, or skip bad rows with --on-bad-row skip")),
                [&] { csv.Import(); });
    csv.options.skip_bad_rows = true;
    EXPECT_THAT(csv.Read().categorical[0].weights, ElementsAre(1, 3)) << row;
  }
}

// A schema's `missing` is about values.
TEST(ImportBagWeights, AreNeverMissing) {
  Csv csv(
      "missing: [\"0\"]\ncolumns: {y: {role: label, missing: []}, t: {role: multi_hot}, w: {role: "
      "bag_weights, bag: t}}\n",
      {"y,t,w\n1,a,0\n0,a|0|b,0|5|2\n"});
  EXPECT_THAT(csv.Read().categorical[0].weights, ElementsAre(0, 0, 2));
}

TEST(ImportBagWeights, WithoutThemNothingIsWritten) {
  const char* const text = "y,tags,relevance,other\n1,a,1,x\n0,b,2,z\n";
  Csv with(kBagsSchema, {text});
  Csv without(
      "columns: {y: {role: label}, tags: {role: multi_hot, missing: [\"-\"]}, relevance: {role: "
      "skip}, other: {role: multi_hot}}\n",
      {text});
  EXPECT_THAT(without.Read().categorical[0].weights, IsEmpty());
  EXPECT_THAT(ReadFile(without.options.output + "/dataset.yaml"),
              AllOf(Not(HasSubstr("weights")), HasSubstr("format_version: 2")));
  // A batch that is reused keeps no old weights.
  Batch reused = with.Read();
  const int64_t rows[] = {0};
  Dataset(without.options.output).Read(rows, &reused);
  EXPECT_THAT(reused.categorical[0].weights, IsEmpty());
  EXPECT_NE(Dataset(with.options.output).fingerprint(),
            Dataset(without.options.output).fingerprint());
}

TEST(ImportBagWeights, FollowTheRowsOfASplit) {
  std::string text = "y,tags,relevance,other\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},t{}|u{},{}|-{},x\n", i % 2, i, i, i, i);
  Csv csv(kBagsSchema, {text});
  csv.options.split = "random:0.25";
  csv.Import();
  int64_t rows = 0;
  for (const char* part : {"/train", "/test"}) {
    const Dataset dataset(csv.options.output + part);
    dataset.Verify();
    rows += dataset.num_rows();
    const Batch batch = ReadAll(dataset);
    const FeatureIds& tags = batch.categorical[0];
    ASSERT_EQ(tags.weights.size(), tags.values.size());
    for (size_t i = 0; i < tags.weights.size(); i += 2)
      EXPECT_EQ(tags.weights[i], -tags.weights[i + 1]);
  }
  EXPECT_EQ(rows, 40);
}

TEST(ImportBagWeights, TestDataHaveThoseOfTheTrainingData) {
  Csv training(kBagsSchema, {"y,tags,relevance,other\n1,a,1,x\n0,b,2,z\n"});
  training.Import();
  Csv test(
      "columns: {y: {role: label}, tags: {role: multi_hot, missing: [\"-\"]}, relevance: {role: "
      "skip}, other: {role: multi_hot}}\n",
      {"y,tags,relevance,other\n1,a,1,x\n"});
  test.options.vocabulary.clear();
  test.options.vocabulary_from = training.options.output;
  ExpectError(ErrorCode::kConfig, HasSubstr("the weights of feature 'tags' are 'relevance' in"),
              [&] { test.Import(); });
}

TEST(ImportBagWeights, CorruptOnesAreFound) {
  Csv csv(kBagsSchema, {"y,tags,relevance,other\n1,a,1,x\n0,b,2,z\n"});
  csv.Import();
  const std::string path = csv.options.output + "/shard-00000/tags.weights.npy";
  std::string bytes = ReadFile(path);
  bytes.back() = 'x';
  WriteFileAtomically(path, bytes);
  ExpectError(ErrorCode::kData, HasSubstr("tags.weights.npy: bytes 0 to 135 are corrupt"),
              [&] { Dataset checked(csv.options.output); });
  const Dataset unchecked(csv.options.output, {.verify_blocks = false});
  ExpectError(ErrorCode::kData, HasSubstr("'tags' has the weight"), [&] { ReadAll(unchecked); });
  ExpectError(ErrorCode::kData, HasSubstr("tags.weights.npy: SHA-256"),
              [&] { unchecked.Verify(); });
}

TEST(CsvSchema, WeightsOfBagsBelongToABag) {
  const auto expect = [](const char* columns, const char* message) {
    ExpectError(ErrorCode::kConfig, HasSubstr(message), [&] {
      CsvSchema::ReadText(fmt::format("columns: {{y: {{role: label}}, {}}}\n", columns), "s.yaml");
    });
  };
  expect("w: {role: bag_weights}", "is missing: the column of role multi_hot whose values");
  expect("w: {role: bag_weights, bag: t}",
         "has 'w', the weights of 't', which is no column of role multi_hot");
  expect("w: {role: bag_weights, bag: t}, t: {role: categorical}",
         "which is no column of role multi_hot");
  expect("w: {role: bag_weights, bag: t}, t: {role: multi_hot, max_length: 5}",
         "which is a sequence (max_length): only bags have weights");
  expect("v: {role: bag_weights, bag: t}, w: {role: bag_weights, bag: t}, t: {role: multi_hot}",
         "which has others: multiply them into one column");
  expect("\"w*\": {role: bag_weights, bag: t}, t: {role: multi_hot}",
         "has the pattern 'w*' with role bag_weights: name that column");
  expect("w: {role: bag_weights, bag: t, separator: \";\"}, t: {role: multi_hot}",
         "belongs to the bag, whose weights are written alike");
  expect("w: {role: bag_weights, bag: t, missing: [\"-1\"]}, t: {role: multi_hot}",
         "which are never missing: remove 'missing'");
  for (const char* separator : {".", "e", "-"})
    expect(
        fmt::format("w: {{role: bag_weights, bag: t}}, t: {{role: multi_hot, separator: \"{}\"}}",
                    separator)
            .c_str(),
        "whose separator can be a part of a number: name another character");
  expect("t: {role: multi_hot, bag: t}", "belongs to role bag_weights");
}

}  // namespace
}  // namespace renzan
