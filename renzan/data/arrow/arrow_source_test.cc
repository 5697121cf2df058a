#include "renzan/data/arrow/arrow_source.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Bools;
using testing::Csv;
using testing::Encoded;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::Lists;
using testing::Numbers;
using testing::TestArray;
using testing::TestStream;
using testing::TextsOf;
using testing::TextViews;

using ArrowColumns = std::vector<TestArray>;

template <typename... Batches>
std::vector<ArrowColumns> BatchesOf(Batches... batches) {
  std::vector<ArrowColumns> all;
  (all.push_back(std::move(batches)), ...);
  return all;
}

template <typename... Arrays>
ArrowColumns ColumnsOf(Arrays... arrays) {
  ArrowColumns all;
  (all.push_back(std::move(arrays)), ...);
  return all;
}

std::map<std::string, std::string> FilesOf(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), directory).string()] =
          ReadFile(entry.path().string());
  return files;
}

// Imports tables with the schema and the options of a CSV file.
struct ArrowTable {
  Csv csv;
  std::string schema;

  ArrowTable(const std::string& the_schema, const std::string& text)
      : csv(the_schema, {text}), schema(the_schema) {}

  ImportSummary Import(TestStream& stream, const std::string& name = "table") const {
    ImportOptions options = csv.options;
    options.output = csv.dir / name;
    const auto source =
        MakeArrowSource(stream.get(), schema, "schema",
                        options.is_training_data() ? Labels::kRequired : Labels::kMayBeMissing);
    return ImportRows(options, *source);
  }

  // The dataset must be that of the CSV file, byte by byte.
  void ExpectSame(std::vector<ArrowColumns> batches) {
    TestStream stream(std::move(batches));
    Import(stream);
    csv.Import();
    const auto expected = FilesOf(csv.options.output), got = FilesOf(csv.dir / "table");
    ASSERT_EQ(expected.size(), got.size());
    for (const auto& [name, bytes] : expected) EXPECT_EQ(got.at(name), bytes) << name;
  }

  void ExpectNothing(ErrorCode code, const ::testing::Matcher<std::string>& message,
                     TestStream& stream) const {
    ExpectError(code, message, [&] { Import(stream); });
    EXPECT_EQ(testing::NamesIn(csv.dir.path()),
              (std::vector<std::string>{"in0.csv", "schema.yaml"}));
  }
};

constexpr char kArrowSchema[] =
    "missing: ['-1']\n"
    "columns:\n"
    "  y: {role: label}\n"
    "  w: {role: weight}\n"
    "  x: {role: dense, transform: standardize, fill: mean}\n"
    "  f: {role: dense, transform: log}\n"
    "  id: {role: categorical, missing: [], key: true}\n"
    "  n: {role: categorical, missing: []}\n"
    "  s: {role: categorical}\n"
    "  v: {role: categorical, missing: []}\n"
    "  e: {role: categorical}\n"
    "  l: {role: multi_hot, brackets: true}\n"
    "  g: {role: multi_hot, missing: [drama]}\n"
    "  d: {role: date, date: '%Y-%m-%d', parts: {day: {role: dense, transform: minmax},"
    " weekday: {role: categorical}}}\n"
    "  t: {role: date, date: '%Y-%m-%d %H:%M:%S', parts: {hour: {role: categorical}}}\n"
    "  k: {role: key}\n"
    "  unused: {role: skip}\n";

constexpr char kArrowText[] =
    "y,w,x,f,id,n,s,v,e,l,g,d,t,k,unused\n"
    "1,0.5,-7,0.1,-5,18446744073709551615,red,short,a,\"[1, 2]\",drama|comedy,2024-02-29,"
    "2024-02-29 23:59:59,true,u\n"
    "0,2,-1,,12,0,,a text of more than twelve bytes,b,[],comedy,,1969-12-31 22:00:01,false,u\n"
    "0,1,30000,16777216,,7,\"two, words\",,a,,,1969-12-31,,,u\n"
    "1,1,,3.5,12,7,red,short,,[300],action,1970-01-01,2024-02-29 00:00:00,true,u\n";

// The first two rows, or the last two.
ArrowColumns HalfOf(bool first) {
  using Doubles = std::vector<std::optional<double>>;
  using Shorts = std::vector<std::optional<int16_t>>;
  const auto choose = [&](auto a, auto b) { return first ? a : b; };
  constexpr int64_t kLeapDay = 19782, kDay = 86'400;
  const std::optional<int64_t> none;
  return ColumnsOf(
      Numbers<uint8_t>("C", "y",
                       choose(std::vector<std::optional<uint8_t>>{1, 0},
                              std::vector<std::optional<uint8_t>>{0, 1})),
      Numbers<double>("g", "w", choose(Doubles{0.5, 2.0}, Doubles{1.0, 1.0})),
      Numbers<int16_t>("s", "x", choose(Shorts{-7, -1}, Shorts{30000, std::nullopt})),
      Numbers<float>("f", "f",
                     choose(std::vector<std::optional<float>>{0.1f, std::nullopt},
                            std::vector<std::optional<float>>{16777216.0f, 3.5f})),
      Numbers<int64_t>("l", "id",
                       choose(std::vector<std::optional<int64_t>>{-5, 12},
                              std::vector<std::optional<int64_t>>{none, 12})),
      Numbers<uint64_t>(
          "L", "n",
          choose(std::vector<std::optional<uint64_t>>{std::numeric_limits<uint64_t>::max(), 0},
                 std::vector<std::optional<uint64_t>>{7, 7})),
      TextsOf<int32_t>(
          "u", "s",
          choose(testing::Texts{"red", std::nullopt}, testing::Texts{"two, words", "red"})),
      TextViews("v", choose(testing::Texts{"short", "a text of more than twelve bytes"},
                            testing::Texts{std::nullopt, "short"})),
      Encoded("e",
              choose(std::vector<std::optional<int8_t>>{1, 0},
                     std::vector<std::optional<int8_t>>{1, std::nullopt}),
              TextsOf<int64_t>("U", "", {"b", "a"})),
      Lists<int32_t>(
          "+l", "l",
          choose(std::vector<std::optional<int>>{2, 0},
                 std::vector<std::optional<int>>{std::nullopt, 2}),
          Numbers<int32_t>("i", "item",
                           choose(std::vector<std::optional<int32_t>>{1, 2},
                                  std::vector<std::optional<int32_t>>{300, std::nullopt}))),
      Lists<int64_t>(
          "+L", "g",
          choose(std::vector<std::optional<int>>{2, 1}, std::vector<std::optional<int>>{0, 2}),
          TextsOf<int32_t>(
              "u", "item",
              choose(testing::Texts{"drama", "comedy", "comedy"}, testing::Texts{"action", ""}))),
      Numbers<int32_t>("tdD", "d",
                       choose(std::vector<std::optional<int32_t>>{kLeapDay, std::nullopt},
                              std::vector<std::optional<int32_t>>{-1, 0})),
      Numbers<int64_t>(
          "tsm:UTC", "t",
          choose(std::vector<std::optional<int64_t>>{1000 * (kLeapDay + 1) * kDay - 1, -7'198'500},
                 std::vector<std::optional<int64_t>>{none, 1000 * kLeapDay * kDay})),
      Bools("k", choose(std::vector<std::optional<bool>>{true, false},
                        std::vector<std::optional<bool>>{std::nullopt, true})),
      // Of a type that no import takes.
      Numbers<int64_t>("ttu", "unused", {1, 2}));
}

TEST(ArrowSource, TheSameBytesAsCsv) {
  ArrowTable table(kArrowSchema, kArrowText);
  table.ExpectSame(BatchesOf(HalfOf(true), HalfOf(false)));
}

TEST(ArrowSource, HashesNumbersAsTheirTexts) {
  ArrowTable table(
      "columns:\n  y: {role: label}\n  a: {role: categorical}\n  'b*': {role: dense}\n",
      "y,a,b10,b2\n1,5,1,2\n0,-128,3,4\n");
  table.csv.options.vocabulary = {"hash:1000"};
  table.ExpectSame(BatchesOf(
      ColumnsOf(Numbers<int8_t>("c", "b10", {1, 3}), TextsOf<int32_t>("z", "y", {"1", "0"}),
                Numbers<int8_t>("c", "a", {5, -128}), Numbers<uint32_t>("I", "b2", {2, 4}))));
  const Dataset dataset(table.csv.dir / "table");
  EXPECT_EQ(dataset.schema().dense, (std::vector<std::string>{"b2", "b10"}));
}

TEST(ArrowSource, AWholeFloatIsItsInteger) {
  // 5 became 5.0 because another value is null.
  ArrowTable table("columns:\n  y: {role: label}\n  a: {role: categorical}\n", "y,a\n1,5\n0,\n");
  table.ExpectSame(BatchesOf(
      ColumnsOf(Bools("y", {true, false}), Numbers<double>("g", "a", {5.0, std::nullopt}))));
  TestStream half(BatchesOf(
      ColumnsOf(Numbers<int32_t>("i", "y", {1, 0}), Numbers<float>("f", "a", {5.0f, 0.5f}))));
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("row 1: column 2 (a): '0.5' is a float that is no whole number"),
                    HasSubstr("cast the column to text")),
              [&] { table.Import(half, "half"); });
}

TEST(ArrowSource, SkipsBadRows) {
  ArrowTable table("columns:\n  y: {role: label}\n  x: {role: dense}\n", "");
  table.csv.options.skip_bad_rows = true;
  const auto batch = [](double number) {
    return ColumnsOf(Numbers<int8_t>("c", "y", {1, 0}), Numbers<double>("g", "x", {number, 2}));
  };
  TestStream stream(BatchesOf(batch(1), batch(std::nan(""))));
  EXPECT_EQ(table.Import(stream).bad_rows, 1);
  EXPECT_THAT(ReadFile(table.csv.dir / "table/skipped_rows.csv"),
              HasSubstr("the table,2,column 2 (x): 'nan' is not a finite number"));
  EXPECT_EQ(Dataset(table.csv.dir / "table").num_rows(), 3);
  EXPECT_EQ(stream.released(), 3);  // a schema and two batches
}

TEST(ArrowSource, AFailingStreamWritesNothing) {
  ArrowTable table("columns:\n  y: {role: label}\n", "");
  TestStream stream(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1, 0})),
                              ColumnsOf(Numbers<int8_t>("c", "y", {1, 0}))));
  stream.FailAt(1);
  table.ExpectNothing(ErrorCode::kData,
                      AllOf(HasSubstr("after 2 rows"), HasSubstr("the disk is on fire")), stream);
  EXPECT_EQ(stream.released(), 2);
}

TEST(ArrowSource, WhatDoesNotFitTheSchema) {
  const auto expect = [](const std::string& role, TestArray array, const std::string& message) {
    ArrowTable table("columns:\n  y: {role: label}\n  x: {" + role + "}\n", "");
    TestStream stream(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1}), std::move(array))));
    table.ExpectNothing(ErrorCode::kConfig, HasSubstr(message), stream);
  };
  expect("role: dense", Numbers<int64_t>("d:10,2", "x", {1}),
         "column 'x' of the table has the type decimal, and in schema the role dense: cast it to");
  expect("role: dense", Numbers<int64_t>("l", "X", {1}),
         "'X' of the table is not in schema (did "
         "you mean 'x'?)");
  expect("role: dense", Lists<int32_t>("+l", "x", {1}, Numbers<int32_t>("i", "item", {1})),
         "has the type list of int32, and in schema the role dense: lists have the role multi_hot");
  expect("role: dense", Numbers<int64_t>("tsn:", "x", {1}), "dates and times have the role date");
  const auto list_of = [](TestArray items) {
    return Lists<int32_t>("+l", "x", {1}, std::move(items));
  };
  expect("role: multi_hot", list_of(Numbers<int64_t>("tsu:America/New_York", "item", {1})),
         "has the type list of timestamp, and in schema the role multi_hot: cast it to");
  expect("role: multi_hot", list_of(Numbers<int32_t>("tdD", "item", {1})),
         "has the type list of date, and in schema the role multi_hot: cast it to");
  expect("role: date, date: '%Y-%m-%d %H', parts: {hour: {role: dense}}",
         Numbers<int32_t>("tdD", "x", {1}), "dates have no hour");
  expect("role: date, date: '%Y-%m-%d', parts: {day: {role: dense}}",
         Numbers<int64_t>("tss:Europe/Berlin", "x", {1}), "time zone 'Europe/Berlin'");
  ArrowTable lacks("columns:\n  y: {role: label}\n  x: {role: dense}\n", "");
  TestStream one(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1}))));
  lacks.ExpectNothing(ErrorCode::kConfig,
                      HasSubstr("the table has no column 'x', which schema declares"), one);
  TestStream two(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1}), Numbers<int8_t>("c", "y", {1}),
                                     Numbers<int8_t>("c", "x", {1}))));
  lacks.ExpectNothing(ErrorCode::kData, HasSubstr("more than one column 'y'"), two);
}

// Columns y and x; `damage` breaks x or the whole batch.
struct Malformed {
  ArrowTable table;
  explicit Malformed(const std::string& role)
      : table("columns:\n  y: {role: label}\n  x: {role: " + role + "}\n", "") {}

  void Expect(TestArray x, const std::string& message,
              const std::function<void(TestArray*)>& damage = nullptr) const {
    SCOPED_TRACE(message);
    TestStream stream(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1, 0}), std::move(x))));
    if (damage) damage(&stream.batch(0));
    ExpectError(ErrorCode::kData, HasSubstr(message), [&] { table.Import(stream); });
    EXPECT_TRUE(stream.released() >= 1);
  }
  // Breaks the array of x.
  void ExpectArray(TestArray x, const std::string& message,
                   const std::function<void(ArrowArray*)>& damage) const {
    x.break_array = damage;
    Expect(std::move(x), "column 'x': the stream's array is malformed: " + message);
  }
};

TEST(ArrowMalformed, Schemas) {
  const Malformed dense("dense");
  const auto x = [] { return Numbers<int32_t>("i", "x", {1, 2}); };
  const std::string message = "the stream's schema is malformed: it is NULL";
  dense.Expect(x(), "column 1: " + message, [](TestArray* batch) {
    batch->break_schema = [](ArrowSchema* schema) { schema->children = nullptr; };
  });
  dense.Expect(x(), "column 2: " + message, [](TestArray* batch) {
    batch->break_schema = [](ArrowSchema* schema) { schema->children[1] = nullptr; };
  });
  for (const bool all : {false, true}) {
    ArrowTable bags("columns:\n  y: {role: label}\n  x: {role: multi_hot}\n", "");
    TestArray lists = Lists<int32_t>("+l", "x", {1}, Numbers<int32_t>("i", "item", {1}));
    lists.break_schema = [all](ArrowSchema* schema) {
      schema->children[0] = nullptr;
      if (all) schema->children = nullptr;
    };
    TestStream stream(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1}), std::move(lists))));
    bags.ExpectNothing(ErrorCode::kConfig,
                       HasSubstr("column 'x' of the table has the type list without items"),
                       stream);
  }
  TestStream none(BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1}))));
  none.get()->get_next = nullptr;
  dense.table.ExpectNothing(ErrorCode::kUsage, HasSubstr("get_next is NULL"), none);
}

TEST(ArrowMalformed, Batches) {
  const Malformed dense("dense");
  const auto expect = [&](const std::string& message,
                          const std::function<void(ArrowArray*)>& damage) {
    dense.Expect(Numbers<int32_t>("i", "x", {1, 2}), message,
                 [&](TestArray* batch) { batch->break_array = damage; });
  };
  expect("malformed batch: its columns are NULL",
         [](ArrowArray* batch) { batch->children = nullptr; });
  expect("column 'x': the stream's array is malformed: it is NULL",
         [](ArrowArray* batch) { batch->children[1] = nullptr; });
  expect("malformed batch: 9223372036854775807 rows from 1 on", [](ArrowArray* batch) {
    batch->length = std::numeric_limits<int64_t>::max();
    batch->offset = 1;
  });
}

TEST(ArrowMalformed, Numbers) {
  const Malformed dense("dense");
  const auto x = [] { return Numbers<int32_t>("i", "x", {1, std::nullopt}); };
  dense.ExpectArray(x(), "it has 0 buffers instead of 2",
                    [](ArrowArray* array) { array->buffers = nullptr; });
  dense.ExpectArray(x(), "it has 1 buffer instead of 2",
                    [](ArrowArray* array) { array->n_buffers = 1; });
  dense.ExpectArray(x(), "a buffer is NULL",
                    [](ArrowArray* array) { array->buffers[1] = nullptr; });
  dense.ExpectArray(x(), "values are null, and the buffer that says which is NULL",
                    [](ArrowArray* array) {
                      array->null_count = 1;
                      array->buffers[0] = nullptr;
                    });
  dense.ExpectArray(x(), "a length or offset below 0",
                    [](ArrowArray* array) { array->offset = -1; });
  dense.ExpectArray(x(), "it has the length 9223372036854775807 and the offset 1",
                    [](ArrowArray* array) {
                      array->length = std::numeric_limits<int64_t>::max();
                      array->offset = 1;
                    });
}

template <typename Offset>
void ExpectMalformedTexts(const std::string& format) {
  const Malformed categorical("categorical");
  const auto x = [&] { return TextsOf<Offset>(format, "x", {"some", "text"}); };
  categorical.ExpectArray(x(), "the buffer of texts is NULL",
                          [](ArrowArray* array) { array->buffers[2] = nullptr; });
  const auto offsets = [&](std::vector<Offset> numbers) {
    TestArray array = x();
    array.buffers[1] = std::string(testing::kGarbage * sizeof(Offset), '\0');
    for (const Offset number : numbers) array.buffers[1] += testing::BytesOf(number);
    return array;
  };
  categorical.ExpectArray(offsets({7, 1'000'000'000, 8}), "value 0 is [7, 1000000000) of [7, 8)",
                          nullptr);
  categorical.ExpectArray(offsets({7, 1, 8}), "value 0 is [7, 1) of [7, 8)", nullptr);
  categorical.ExpectArray(offsets({7, 8, 1}), "its values begin at 7 and end at 1", nullptr);
  categorical.ExpectArray(offsets({-1, 8, 9}), "its values begin at -1 and end at 9", nullptr);
}

TEST(ArrowMalformed, Texts) {
  ExpectMalformedTexts<int32_t>("u");
  ExpectMalformedTexts<int64_t>("U");
}

TEST(ArrowMalformed, TextViews) {
  const Malformed categorical("categorical");
  const auto expect = [&](const std::string& message, size_t word, int32_t value) {
    TestArray x = TextViews("x", {"a text of more than twelve bytes", "b"});
    std::memcpy(x.buffers[1].data() + testing::kGarbage * 16 + word * sizeof value, &value,
                sizeof value);
    categorical.ExpectArray(std::move(x), message, nullptr);
  };
  expect("value 0 is [7, 6) of buffer 0 of 1", 0, -1);
  expect("value 0 is [7, 1000007) of buffer 0 of 1", 0, 1'000'000);
  expect("value 0 is [7, 39) of buffer 1 of 1", 2, 1);
  expect("value 0 is [7, 39) of buffer -1 of 1", 2, -1);
  expect("value 0 is [8, 40) of buffer 0 of 1", 3, 8);
  expect("value 0 is [-1, 31) of buffer 0 of 1", 3, -1);
  const auto x = [] { return TextViews("x", {"a text of more than twelve bytes", "b"}); };
  categorical.ExpectArray(x(), "it has 2 buffers instead of 3",
                          [](ArrowArray* array) { array->n_buffers = 2; });
  categorical.ExpectArray(x(), "the sizes of its buffers are NULL",
                          [](ArrowArray* array) { array->buffers[3] = nullptr; });
  categorical.ExpectArray(x(), "its buffer 0 of texts has the size 39 and is NULL",
                          [](ArrowArray* array) { array->buffers[2] = nullptr; });
}

TEST(ArrowMalformed, ListsAndDictionaries) {
  const Malformed bags("multi_hot");
  const auto x = [] {
    return Lists<int32_t>("+l", "x", {1, 1}, Numbers<int32_t>("i", "item", {1, 2}));
  };
  bags.ExpectArray(x(), "a list has no values",
                   [](ArrowArray* array) { array->children = nullptr; });
  bags.ExpectArray(x(), "it is NULL", [](ArrowArray* array) { array->children[0] = nullptr; });
  bags.ExpectArray(x(), "list 1 ends at 2 of 1 value",
                   [](ArrowArray* array) { array->children[0]->length = 1; });
  TestArray fixed = x();
  fixed.format = "+w:4611686018427387904";
  fixed.buffers.resize(1);
  bags.ExpectArray(std::move(fixed), "5 lists of 4611686018427387904 are more than its 2 values",
                   nullptr);
  const Malformed categorical("categorical");
  const auto encoded = [] { return Encoded("x", {0, 7}, TextsOf<int32_t>("u", "", {"b"})); };
  categorical.ExpectArray(encoded(), "an index is 7, outside the dictionary's [0, 1)", nullptr);
  categorical.ExpectArray(encoded(), "it has no dictionary",
                          [](ArrowArray* array) { array->dictionary = nullptr; });
}

TEST(ArrowSource, TimesOutsideTheCalendar) {
  ArrowTable table(
      "columns:\n  y: {role: label}\n  x: {role: date, date: '%Y-%m-%d', parts: {day: {role: "
      "dense}}}\n  z: {role: categorical}\n",
      "y,x,z\n1,1677-09-21,1677-09-21 00:12:43.145224197\n0,9999-12-31,2262-04-11 "
      "23:47:16.854775807\n1,0000-01-01,1970-01-01 00:00:00\n");
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kFirst = -62'167'219'200, kEnd = 253'402'300'800;
  const auto batch = [&](std::vector<std::optional<int64_t>> x,
                         std::vector<std::optional<int64_t>> z) {
    return BatchesOf(ColumnsOf(Numbers<int8_t>("c", "y", {1, 0, 1}),
                               Numbers<int64_t>("tss:", "x", x), Numbers<int64_t>("tsn:", "z", z)));
  };
  const int64_t old = kMin / 1'000'000'000 + 1;
  table.ExpectSame(
      batch({old, kEnd - 1, kFirst}, {kMin + 5, std::numeric_limits<int64_t>::max(), 0}));
  for (const int64_t seconds : {kFirst - 1, kEnd, int64_t{1} << 62, kMin}) {
    TestStream stream(batch({0, seconds, 0}, {0, 0, 0}));
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("row 1: column 2 (x)"), HasSubstr("is no time of the years 0 to")),
                [&] { table.Import(stream, "outside"); });
  }
}

TEST(ArrowSource, NoLabelsForPredictions) {
  ArrowTable table("columns:\n  y: {role: label}\n  a: {role: categorical}\n", "y,a\n1,p\n0,q\n");
  table.csv.Import();
  table.csv.options.vocabulary = {};
  table.csv.options.vocabulary_from = table.csv.options.output;
  TestStream stream(BatchesOf(ColumnsOf(TextsOf<int32_t>("u", "a", {"q", "new"}))));
  table.Import(stream);
  const Batch batch = testing::ReadAll(Dataset(table.csv.dir / "table"));
  EXPECT_EQ(batch.categorical[0].values, (std::vector<int64_t>{3, 1}));
}

}  // namespace
}  // namespace renzan
