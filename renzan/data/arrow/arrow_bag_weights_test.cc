// The weights of bags in tables.

#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::Lists;
using testing::Numbers;
using testing::TestArray;
using testing::TestStream;
using testing::TextsOf;

constexpr char kWeightedTable[] =
    "columns: {y: {role: label}, t: {role: multi_hot}, w: {role: bag_weights, bag: t}}\n";

TestStream StreamOf(TestArray tags, TestArray weights) {
  std::vector<TestArray> columns;
  columns.push_back(Numbers<int8_t>(
      "c", "y", std::vector<std::optional<int8_t>>(static_cast<size_t>(tags.length), 1)));
  columns.push_back(std::move(tags));
  columns.push_back(std::move(weights));
  std::vector<std::vector<TestArray>> batches;
  batches.push_back(std::move(columns));
  return TestStream(std::move(batches));
}

void ImportWeighted(const Csv& csv, TestArray tags, TestArray weights) {
  TestStream stream = StreamOf(std::move(tags), std::move(weights));
  const auto source = MakeArrowSource(stream.get(), kWeightedTable, "schema", Labels::kRequired);
  ImportRows(csv.options, *source);
}

// A null in a bag drops its weight, and a list that is null is empty.
TEST(ArrowBagWeights, AreThoseOfText) {
  const Csv csv(kWeightedTable, {"y,t,w\n1,a|b,0.5|2\n1,,\n1,c||d,1|7|0.1\n"});
  csv.Import();
  const Csv table(kWeightedTable, {});
  ImportWeighted(table,
                 Lists<int32_t>("+l", "t", {2, std::nullopt, 3},
                                TextsOf<int32_t>("u", "item", {"a", "b", "c", std::nullopt, "d"})),
                 Lists<int32_t>("+l", "w", {2, std::nullopt, 3},
                                Numbers<float>("f", "item", {0.5f, 2.0f, 1.0f, 7.0f, 0.1f})));
  for (const char* file :
       {"/dataset.yaml", "/shard-00000/t.values.npy", "/shard-00000/t.weights.npy"})
    EXPECT_EQ(ReadFile(csv.options.output + file), ReadFile(table.options.output + file)) << file;
}

TEST(ArrowBagWeights, BadOnesMakeBadRows) {
  const auto tags = [] {
    return Lists<int32_t>("+l", "t", {2}, Numbers<int64_t>("l", "item", {7, 8}));
  };
  const Csv csv(kWeightedTable, {});
  ExpectError(ErrorCode::kData, HasSubstr("'t' has 2 values, but 'w' has 1 weight"), [&] {
    ImportWeighted(csv, tags(),
                   Lists<int32_t>("+l", "w", {1}, Numbers<double>("g", "item", {0.5})));
  });
  ExpectError(ErrorCode::kData, HasSubstr("at position 1 of the bag, is not a finite number"), [&] {
    ImportWeighted(
        csv, tags(),
        Lists<int32_t>("+l", "w", {2}, Numbers<double>("g", "item", {0.5, std::nullopt})));
  });
  EXPECT_FALSE(FileExists(csv.options.output));
}

}  // namespace
}  // namespace renzan
