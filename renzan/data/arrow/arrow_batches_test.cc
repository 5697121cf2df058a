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

}  // namespace
}  // namespace renzan
