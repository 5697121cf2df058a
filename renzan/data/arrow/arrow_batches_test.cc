#include <deque>

#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::TestArray;
using testing::TestStream;

// Arrow lets a producer say -1 where it has not counted.
TEST(ArrowBatches, RowsThatAreNullAreCounted) {
  const std::string schema = "columns: {y: {role: label}, x: {role: dense}}\n";
  const auto import = [&](int64_t nulls, const std::string& validity, int64_t offset) {
    const Csv csv(schema, {});
    std::vector<std::vector<TestArray>> batches(1);
    batches[0].push_back(Numbers<int8_t>("c", "y", {0, 1, 0, 1}));
    batches[0].push_back(Numbers<float>("f", "x", {1, 2, 3, 4}));
    TestStream stream(std::move(batches));
    stream.batch(0).nulls = nulls;
    stream.batch(0).offset = offset;
    stream.batch(0).length = 4 - offset;
    stream.batch(0).buffers = {validity};
    const auto source = MakeArrowSource(stream.get(), schema, "schema", Labels::kRequired);
    return ImportRows(csv.options, *source).rows;
  };
  EXPECT_EQ(import(-1, "", 0), 4);
  EXPECT_EQ(import(-1, "\x0f", 0), 4);
  EXPECT_EQ(import(-1, "\x0e", 1), 3);  // the first bit is of no row
  EXPECT_EQ(import(0, "\x01", 0), 4);
  const auto expect = [&](const std::string& message, int64_t nulls, const std::string& validity) {
    ExpectError(ErrorCode::kData, HasSubstr(message), [&] { import(nulls, validity, 0); });
  };
  expect("after 0 rows the stream has a batch with a row that is null", -1, "\x0b");
  expect("after 0 rows the stream has a batch with 3 rows that are null", -1, "\x01");
  expect("after 0 rows the stream has a batch with 2 rows that are null", 2, "\x0a");
}

// Several streams, in order, of which a column 'x' is given.
ImportSummary ImportStreams(const Csv& csv, const std::string& schema, std::vector<TestArray> xs) {
  std::deque<TestStream> streams;
  std::vector<ArrowInput> inputs;
  for (TestArray& x : xs) {
    std::vector<std::vector<TestArray>> batches(1);
    batches[0].push_back(Numbers<int8_t>("c", "y", {0, 1}));
    batches[0].push_back(std::move(x));
    inputs.push_back({streams.emplace_back(std::move(batches)).get(),
                      fmt::format("{}.parquet", static_cast<char>('a' + inputs.size()))});
  }
  const auto source = MakeArrowSource(inputs, schema, "schema", Labels::kRequired);
  return ImportRows(csv.options, *source);
}

// The types of a column in two files, the second after the first.
void ExpectUnlike(TestArray first, TestArray second, const std::string& message,
                  const std::string& role = "categorical") {
  const std::string schema = "columns: {y: {role: label}, x: {role: " + role + "}}\n";
  const Csv csv(schema, {});
  std::vector<TestArray> xs;
  xs.push_back(std::move(first));
  xs.push_back(std::move(second));
  ExpectError(ErrorCode::kData, HasSubstr("b.parquet: column 'x' has the type " + message),
              [&] { ImportStreams(csv, schema, std::move(xs)); });
}

TEST(ArrowInputs, TypesThatReadDifferently) {
  using testing::Bools;
  using testing::Lists;
  using testing::TextsOf;
  const auto numbers = [] { return Numbers<int64_t>("l", "x", {1, 2}); };
  const auto texts = [] { return TextsOf<int32_t>("u", "x", {"1", "02"}); };
  const auto times = [](const std::string& format) {
    return Numbers<int64_t>(format, "x", {1, 2});
  };
  ExpectUnlike(numbers(), texts(), "string, and int64 in a.parquet: write them again");
  ExpectUnlike(texts(), numbers(), "int64, and string in a.parquet");
  ExpectUnlike(numbers(), Bools("x", {true, false}), "bool, and int64 in a.parquet");
  ExpectUnlike(times("tsm:"), times("tsu:"), "timestamp[us], and timestamp[ms] in");
  ExpectUnlike(times("tsm:UTC"), times("tsm:"), "timestamp[ms], and timestamp[ms, UTC] in");
  ExpectUnlike(times("tsm:"), Numbers<int32_t>("tdD", "x", {1, 2}), "date, and timestamp[ms] in");
  ExpectUnlike(numbers(), times("tsm:"), "timestamp[ms], and int64 in");
  const auto lists = [](TestArray items) {
    return Lists<int32_t>("+l", "x", {1, 1}, std::move(items));
  };
  ExpectUnlike(lists(numbers()), lists(texts()), "list of string, and list of int64 in",
               "multi_hot");
  ExpectUnlike(lists(numbers()), numbers(), "int64, and list of int64 in", "multi_hot");
}

TEST(ArrowInputs, TypesThatReadAlike) {
  using testing::Encoded;
  using testing::TextsOf;
  using testing::TextViews;
  const std::string schema = "columns: {y: {role: label}, x: {role: categorical}}\n";
  // All in one import, also after a file that has only nulls.
  const auto import = [&](bool texts) {
    Csv csv(schema, {});
    csv.options.vocabulary = {"threshold:1"};
    std::vector<TestArray> xs;
    xs.push_back(TestArray{.format = "n", .name = "x", .length = 2});
    if (texts) {
      xs.push_back(TextsOf<int32_t>("u", "x", {"a", "b"}));
      xs.push_back(TextsOf<int64_t>("Z", "x", {"b", "a"}));
      xs.push_back(TextViews("x", {"a", "a"}));
      xs.push_back(Encoded("x", {0, 1}, TextsOf<int32_t>("u", "", {"a", "b"})));
    } else {
      xs.push_back(Numbers<int64_t>("l", "x", {7, 8}));
      xs.push_back(Numbers<uint8_t>("C", "x", {8, 7}));
      xs.push_back(Numbers<float>("f", "x", {7.0f, 8.0f}));
      xs.push_back(Numbers<double>("g", "x", {7.0, 7.0}));
    }
    EXPECT_EQ(ImportStreams(csv, schema, std::move(xs)).rows, 10);
    const Dataset dataset(csv.options.output);
    return dataset.schema().categorical[0].num_embeddings;
  };
  EXPECT_EQ(import(true), 4);  // two values, and the rows for missing and unseen ones
  EXPECT_EQ(import(false), 4);
}

// The types of columns that nobody reads may differ, unless rows are split by one.
TEST(ArrowInputs, TypesOfSkippedColumns) {
  using testing::TextsOf;
  const std::string schema = "columns: {y: {role: label}, x: {role: skip}}\n";
  const auto xs = [] {
    std::vector<TestArray> two;
    two.push_back(Numbers<int64_t>("l", "x", {1, 2}));
    two.push_back(TextsOf<int32_t>("u", "x", {"1", "02"}));
    return two;
  };
  Csv csv(schema, {});
  EXPECT_EQ(ImportStreams(csv, schema, xs()).rows, 4);
  csv.options.output = csv.dir / "split";
  csv.options.split = "group:x@0.5";
  ExpectError(ErrorCode::kData, HasSubstr("b.parquet: column 'x' has the type string, and int64"),
              [&] { ImportStreams(csv, schema, xs()); });
}

TEST(ArrowInputs, BadRowsAreCountedInTheirFile) {
  const std::string schema = "columns: {y: {role: label}, x: {role: categorical}}\n";
  const Csv csv(schema, {});
  std::vector<TestArray> xs;
  xs.push_back(Numbers<double>("g", "x", {1.0, 2.0}));
  xs.push_back(Numbers<double>("g", "x", {1.0, 2.5}));
  ExpectError(ErrorCode::kData, HasSubstr("b.parquet: row 1: column 2 (x): '2.5'"),
              [&] { ImportStreams(csv, schema, std::move(xs)); });
}

}  // namespace
}  // namespace renzan
