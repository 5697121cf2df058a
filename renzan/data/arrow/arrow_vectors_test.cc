// Vectors and buckets in tables.

#include <limits>

#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::Lists;
using testing::Numbers;
using testing::TestArray;
using testing::TestStream;
using testing::TextsOf;

constexpr char kVectors[] =
    "columns: {y: {role: label}, text: {role: dense, dimension: 2, transform: log}}\n";

std::vector<TestArray> Two(TestArray first, TestArray second) {
  std::vector<TestArray> columns;
  columns.push_back(std::move(first));
  columns.push_back(std::move(second));
  return columns;
}

TestArray Labels2(size_t rows) {
  return Numbers<int8_t>("c", "y", std::vector<std::optional<int8_t>>(rows, 1));
}

// A fixed-size list array, whose offset counts lists.
TestArray FixedLists(const std::string& name, int size,
                     const std::vector<std::optional<int>>& valid, TestArray items) {
  TestArray array = testing::ArrayOf("+w:" + std::to_string(size), name, valid, {});
  // Its values begin where those of the garbage before its offset end.
  const size_t skipped = testing::kGarbage * static_cast<size_t>(size) * sizeof(float);
  items.buffers[1] =
      std::string(skipped, '\x55') + items.buffers[1].substr(testing::kGarbage * sizeof(float));
  items.buffers[0].clear();
  items.nulls = 0;
  items.length += static_cast<int64_t>(testing::kGarbage) * size;
  items.offset = 0;
  array.children.push_back(std::move(items));
  return array;
}

ImportSummary ImportTable(const Csv& csv, const std::string& schema, TestStream& stream) {
  const auto source = MakeArrowSource(stream.get(), schema, "schema", Labels::kRequired);
  return ImportRows(csv.options, *source);
}

void ExpectProblem(const std::string& schema, ErrorCode code,
                   const ::testing::Matcher<std::string>& message, TestArray column) {
  const Csv csv(schema, {});
  const auto rows = static_cast<size_t>(column.length);
  std::vector<std::vector<TestArray>> batches;
  batches.push_back(Two(Labels2(rows), std::move(column)));
  TestStream stream(std::move(batches));
  ExpectError(code, message, [&] { ImportTable(csv, schema, stream); });
  EXPECT_FALSE(FileExists(csv.options.output));
}

TEST(ArrowVectors, AreThoseOfText) {
  const Csv csv(kVectors, {"y,text\n1,0|1.5\n1,\n1,2.5|3\n"});
  csv.Import();
  const auto expect_same = [&](TestArray column) {
    const Csv table(kVectors, {});
    std::vector<std::vector<TestArray>> batches;
    batches.push_back(Two(Labels2(3), std::move(column)));
    TestStream stream(std::move(batches));
    ImportTable(table, kVectors, stream);
    for (const char* file : {"/dataset.yaml", "/shard-00000/dense.npy"})
      EXPECT_EQ(ReadFile(csv.options.output + file), ReadFile(table.options.output + file)) << file;
  };
  expect_same(Lists<int32_t>("+l", "text", {2, std::nullopt, 2},
                             Numbers<float>("f", "item", {0, 1.5f, 2.5f, 3})));
  expect_same(Lists<int64_t>("+L", "text", {2, std::nullopt, 2},
                             Numbers<double>("g", "item", {0, 1.5, 2.5, 3})));
  expect_same(FixedLists("text", 2, {1, std::nullopt, 1},
                         Numbers<float>("f", "item", {0, 1.5f, 99, 99, 2.5f, 3})));
  expect_same(TextsOf<int32_t>("u", "text", {"0|1.5", std::nullopt, "2.5|3"}));
}

TEST(ArrowVectors, OfAnotherLengthOrType) {
  ExpectProblem(kVectors, ErrorCode::kData,
                HasSubstr("row 1: column 2 (text): a vector of 3 numbers, but dimension is 2"),
                Lists<int32_t>("+l", "text", {2, 3}, Numbers<float>("f", "item", {0, 1, 2, 3, 4})));
  ExpectProblem(kVectors, ErrorCode::kData,
                AllOf(HasSubstr("row 0: column 2 (text): null at position 1 of the vector"),
                      HasSubstr("write null instead of the list")),
                Lists<int32_t>("+l", "text", {2}, Numbers<float>("f", "item", {0, std::nullopt})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectProblem(kVectors, ErrorCode::kData,
                AllOf(HasSubstr("'nan' is not a finite number, at position 0 of the vector"),
                      HasSubstr("write null instead of the list; 'missing' does not apply")),
                Lists<int32_t>("+l", "text", {2}, Numbers<float>("f", "item", {nan, 1})));
  ExpectProblem(kVectors, ErrorCode::kConfig,
                AllOf(HasSubstr("column 'text' of the table has the type list of float32"),
                      HasSubstr("its lists have 3 numbers, but dimension is 2")),
                FixedLists("text", 3, {1}, Numbers<float>("f", "item", {0, 1, 2})));
  ExpectProblem(kVectors, ErrorCode::kConfig, HasSubstr("cast it to lists of 2 numbers"),
                Numbers<float>("f", "text", {1}));
  ExpectProblem(kVectors, ErrorCode::kConfig, HasSubstr("cast its items to float32"),
                Lists<int32_t>("+l", "text", {1}, TextsOf<int32_t>("u", "item", {"1"})));
  ExpectProblem("columns: {y: {role: label}, text: {role: dense}}\n", ErrorCode::kConfig,
                HasSubstr("lists have the role multi_hot, or dense with their length"),
                Lists<int32_t>("+l", "text", {1}, Numbers<float>("f", "item", {0})));
}

TEST(ArrowBuckets, AreThoseOfText) {
  const std::string schema =
      "columns: {y: {role: label}, age: {role: categorical, buckets: [2, 3.5], missing: "
      "[\"9\"]}}\n";
  const auto import = [&](TestArray column) {
    const Csv csv(schema, {});
    const auto rows = static_cast<size_t>(column.length);
    std::vector<std::vector<TestArray>> batches;
    batches.push_back(Two(Labels2(rows), std::move(column)));
    TestStream stream(std::move(batches));
    ImportOptions options = csv.options;
    options.unseen = {"0"};
    const auto source = MakeArrowSource(stream.get(), schema, "schema", Labels::kRequired);
    ImportRows(options, *source);
    EXPECT_THAT(csv.Values("age"), ElementsAre("(-inf, 2)", "[2, 3.5)", "[3.5, inf)"));
    EXPECT_THAT(testing::ReadAll(Dataset(options.output)).categorical[0].values,
                ElementsAre(2, 2, 2, 3, 3, 0, 0, 4));
  };
  import(Numbers<int64_t>("l", "age", {1, 0, -5, 2, 3, std::nullopt, 9, 4}));
  import(Numbers<double>("g", "age", {1, 0, -5, 2, 3, std::nullopt, 9, 4}));
  import(TextsOf<int32_t>("u", "age", {"1", "0", "-5", "2", "3", std::nullopt, "9", "4"}));
  ExpectProblem(schema, ErrorCode::kData, HasSubstr("'nan' is not a finite number"),
                Numbers<double>("g", "age", {std::numeric_limits<double>::quiet_NaN()}));
}

}  // namespace
}  // namespace renzan
