#include "renzan/data/row_split.h"

#include <filesystem>
#include <map>
#include <set>

#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/input_rows.h"
#include "renzan/data/key_column.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using testing::ExpectError;
using ::testing::HasSubstr;

constexpr char kSplitSchema[] =
    "columns:\n"
    "  y: {role: label}\n"
    "  day: {role: date, date: '%Y-%m-%d', parts: {day: {role: dense, transform: minmax}}}\n"
    "  x: {role: dense, transform: standardize, fill: mean}\n"
    "  user: {role: categorical}\n"
    "  item: {role: multi_hot}\n"
    "  n: {role: key}\n";
constexpr char kSplitHeader[] = "y,day,x,user,item,n\n";
constexpr int kSplitRows = 400;

struct SplitRow {
  int user, day;
  std::string text;
};

std::vector<SplitRow> RowsToSplit() {
  std::vector<SplitRow> rows;
  for (int i = 0; i < kSplitRows; ++i) {
    const int user = i * i % 37, day = i * 7 % 28;
    rows.push_back({user, day,
                    fmt::format("{},2024-02-{:02},{},{},{}|{},{}\n", i % 3 == 0 ? 1 : 0, day + 1,
                                i % 5 == 0 ? "" : fmt::format("{}", i * 0.37),
                                user == 0 ? "" : fmt::format("u{}", user), i % 11, i % 50, i)});
  }
  return rows;
}

std::string AllRows() {
  std::string text = kSplitHeader;
  for (const SplitRow& row : RowsToSplit()) text += row.text;
  return text;
}

// The numbers of the input's rows, which column n holds.
std::set<int> RowsIn(const std::string& directory) {
  const Dataset dataset(directory);
  const KeyColumn keys(dataset, "n", 0, dataset.num_rows());
  const InputRows input_rows(dataset);
  std::set<int> rows;
  for (int64_t row = 0; row < dataset.num_rows(); ++row) {
    rows.insert(std::stoi(std::string(keys.Text(row))));
    EXPECT_EQ(input_rows.Of(row), std::stoi(std::string(keys.Text(row))));
  }
  EXPECT_EQ(std::ssize(rows), dataset.num_rows());
  return rows;
}

// Both datasets must be those of imports of their rows alone.
std::set<int> ExpectSplit(const std::string& split, const std::vector<std::string>& vocabulary) {
  Csv whole(kSplitSchema, {AllRows()});
  whole.options.vocabulary = vocabulary;
  whole.options.split = split;
  whole.options.shard_rows = 90;
  const ImportSummary summary = whole.Import();
  const std::string train = whole.options.output + "/train", test = whole.options.output + "/test";
  const std::set<int> in_train = RowsIn(train), in_test = RowsIn(test);
  EXPECT_EQ(in_train.size() + in_test.size(), size_t{kSplitRows});
  EXPECT_EQ(summary.rows, std::ssize(in_train));
  EXPECT_EQ(summary.test_rows, std::ssize(in_test));
  std::string train_text = kSplitHeader, test_text = kSplitHeader;
  const std::vector<SplitRow> rows = RowsToSplit();
  for (int i = 0; i < kSplitRows; ++i)
    (in_test.contains(i) ? test_text : train_text) += rows[static_cast<size_t>(i)].text;
  Csv alone(kSplitSchema, {train_text});
  alone.options.vocabulary = vocabulary;
  alone.options.shard_rows = 90;
  alone.Import();
  Csv later(kSplitSchema, {test_text});
  later.options.vocabulary = {};
  later.options.vocabulary_from = alone.options.output;
  later.options.shard_rows = 90;
  const ImportSummary expected = later.Import();
  EXPECT_EQ(Dataset(train).fingerprint(), Dataset(alone.options.output).fingerprint());
  EXPECT_EQ(Dataset(test).fingerprint(), Dataset(later.options.output).fingerprint());
  Dataset(test).Verify();
  const ImportSummary& held_out = summary.test.at(0);
  EXPECT_EQ(held_out.unseen.size(), expected.unseen.size());
  for (size_t f = 0; f < expected.unseen.size(); ++f) {
    EXPECT_EQ(held_out.unseen[f].lookups, expected.unseen[f].lookups);
    EXPECT_EQ(held_out.unseen[f].unseen, expected.unseen[f].unseen);
    EXPECT_EQ(held_out.unseen[f].feature, expected.unseen[f].feature);
  }
  EXPECT_EQ(held_out.label.positive_rows, expected.label.positive_rows);
  return in_test;
}

TEST(RowSplit, ByTime) {
  const std::vector<SplitRow> rows = RowsToSplit();
  const std::set<int> test = ExpectSplit("time:day@2024-02-20", {"threshold:2"});
  for (int i = 0; i < kSplitRows; ++i)
    EXPECT_EQ(test.contains(i), rows[static_cast<size_t>(i)].day >= 19) << i;
  // A number, in a column that is no feature.
  const std::set<int> last = ExpectSplit("time:n@1e2", {"hash:1000", "user=threshold:1"});
  EXPECT_EQ(last.size(), size_t{kSplitRows - 100});
  EXPECT_FALSE(last.contains(99));
}

TEST(RowSplit, AtRandom) {
  const std::set<int> test = ExpectSplit("random:0.25", {"threshold:1"});
  EXPECT_GT(test.size(), size_t{kSplitRows / 6});
  EXPECT_LT(test.size(), size_t{kSplitRows / 3});
  Csv other(kSplitSchema, {AllRows()});
  other.options.split = "random:0.25";
  other.options.seed = 1;
  other.Import();
  EXPECT_NE(RowsIn(other.options.output + "/test"), test);
}

TEST(RowSplit, ByGroup) {
  const std::vector<SplitRow> rows = RowsToSplit();
  const std::set<int> test = ExpectSplit("group:user@0.3", {"threshold:1"});
  std::map<int, std::set<bool>> sides;
  for (int i = 0; i < kSplitRows; ++i)
    sides[rows[static_cast<size_t>(i)].user].insert(test.contains(i));
  for (const auto& [user, side] : sides) EXPECT_EQ(side.size(), 1u) << user;
}

TEST(RowSplit, SharedTables) {
  const std::string schema =
      "columns:\n  y: {role: label}\n  n: {role: skip}\n  a: {role: categorical}\n"
      "  b: {role: categorical, table: a}\n";
  Csv csv(schema, {"y,n,a,b\n1,1,p,q\n0,2,q,p\n1,3,p,new\n0,4,q,q\n"});
  csv.options.split = "time:n@3";
  csv.options.unseen = {"0"};
  const ImportSummary summary = csv.Import();
  const Batch train = testing::ReadAll(Dataset(csv.options.output + "/train"));
  const Batch test = testing::ReadAll(Dataset(csv.options.output + "/test"));
  const int64_t p = train.categorical[0].values[0], q = train.categorical[0].values[1];
  EXPECT_EQ(train.categorical[1].values, (std::vector<int64_t>{q, p}));
  EXPECT_EQ(test.categorical[0].values, (std::vector<int64_t>{p, q}));
  EXPECT_EQ(test.categorical[1].values, (std::vector<int64_t>{Vocabulary::kRare, q}));
  EXPECT_EQ(summary.test.at(0).unseen[0].unseen, 0);
  EXPECT_EQ(summary.test.at(0).unseen[1].unseen, 1);
}

// The rows of the test set of a table with the column t, which has three rows.
std::set<int> TestRowsOfTable(const std::string& value, testing::TestArray t,
                              const std::string& missing = "") {
  const std::string schema = "columns:\n  y: {role: label}\n  t: {role: skip" + missing +
                             "}\n  n: {role: key}\n  a: {role: categorical}\n";
  std::vector<testing::TestArray> columns;
  columns.push_back(testing::Numbers<int32_t>("i", "y", {1, 0, 1}));
  columns.push_back(std::move(t));
  columns.push_back(testing::Numbers<int32_t>("i", "n", {0, 1, 2}));
  columns.push_back(testing::Numbers<int32_t>("i", "a", {1, 0, 1}));
  std::vector<std::vector<testing::TestArray>> batches;
  batches.push_back(std::move(columns));
  testing::TestStream stream(std::move(batches));
  TemporaryDirectory dir;
  ImportOptions options;
  options.format = "csv";
  options.output = dir / "out";
  options.split = "time:t@" + value;
  const auto source = MakeArrowSource(stream.get(), schema, "schema", Labels::kRequired);
  ImportRows(options, *source);
  return RowsIn(dir / "out/test");
}

TEST(RowSplit, TimesOfTables) {
  constexpr int64_t kNoon = 1'709'208'000;  // 2024-02-29 12:00:00
  using Times = std::vector<std::optional<int64_t>>;
  const auto import = [&](const std::string& value, const Times& times) {
    return TestRowsOfTable(value, testing::Numbers<int64_t>("tss:", "t", times));
  };
  const Times times = {kNoon, kNoon - 1, kNoon + 86'400};
  EXPECT_EQ(import("2024-02-29 12:00:00", times), (std::set<int>{0, 2}));
  EXPECT_EQ(import("2024-03-01", times), (std::set<int>{2}));
  for (const char* value : {"March", "2024-3-1", "2024-03-01 9:00:00", "2024-03-01 09:00:00.5"})
    ExpectError(ErrorCode::kUsage, HasSubstr(fmt::format("'{}' is not a date such as", value)),
                [&] { import(value, times); });
  ExpectError(ErrorCode::kData, HasSubstr("row 1: column 't': '' is missing"), [&] {
    import("2024-03-01", {kNoon, std::nullopt, kNoon});
  });
  constexpr int64_t kYear = 31'556'952;
  for (const int64_t other : {kNoon + 9000 * kYear, kNoon - 2500 * kYear, kNoon - 5000 * kYear})
    ExpectError(ErrorCode::kData, HasSubstr("is no time of the years 0 to 9999"), [&] {
      import("2024-03-01", {kNoon, other, kNoon + 86'400});
    });
}

TEST(RowSplit, DatesOfTables) {
  constexpr int32_t kMarch = 19'783;  // 2024-03-01
  const auto import = [&](const std::string& value) {
    return TestRowsOfTable(value,
                           testing::Numbers<int32_t>("tdD", "t", {kMarch - 1, kMarch, kMarch + 1}));
  };
  EXPECT_EQ(import("2024-03-01"), (std::set<int>{1, 2}));
  for (const char* value : {"2024-03-01 00:00:00", "2024-3-1"})
    ExpectError(ErrorCode::kUsage, HasSubstr("is not a date such as 2024-03-01, as the column's"),
                [&] { import(value); });
}

TEST(RowSplit, NumbersOfTables) {
  constexpr int64_t kLarge = 9'007'199'254'740'992;  // the first that is the double of another
  const auto large = [=] {
    return testing::Numbers<int64_t>("l", "t", {kLarge, kLarge + 1, kLarge + 2});
  };
  EXPECT_EQ(TestRowsOfTable("9007199254740993", large()), (std::set<int>{1, 2}));
  EXPECT_EQ(TestRowsOfTable("9007199254740993", large(), ", missing: ['5']"),
            (std::set<int>{1, 2}));
  ExpectError(ErrorCode::kUsage, HasSubstr("'2024-02-01' is not a number, as the column's values"),
              [&] { TestRowsOfTable("2024-02-01", large()); });
  ExpectError(ErrorCode::kUsage, HasSubstr("is too large to be compared exactly"),
              [&] { TestRowsOfTable("9007199254740993.5", large()); });
  ExpectError(ErrorCode::kData, HasSubstr("row 1: column 't': '' is missing"), [&] {
    TestRowsOfTable("5", testing::Numbers<double>("g", "t", {4.0, -1.0, 6.0}),
                    ", missing: ['-1.0']");
  });
}

// The test set's rows of a text file with a column t, whose description is given.
std::set<int> TestRowsOfText(const std::string& value, const std::string& described,
                             const std::vector<std::string>& fields) {
  std::string text = "y,t,n\n";
  for (size_t row = 0; row < fields.size(); ++row)
    text += fmt::format("{},{},{}\n", row % 2, fields[row], row);
  Csv csv("columns:\n  y: {role: label}\n  t: {role: " + described + "}\n  n: {role: key}\n",
          {text});
  csv.options.vocabulary = {};
  csv.options.split = value;
  csv.Import();
  return RowsIn(csv.options.output + "/test");
}

TEST(RowSplit, ComparesExactly) {
  const std::vector<std::string> large = {"9007199254740992", "9007199254740993",
                                          "18446744073709551615"};
  EXPECT_EQ(TestRowsOfText("time:t@9007199254740993", "skip", large), (std::set<int>{1, 2}));
  ExpectError(ErrorCode::kData, HasSubstr("'9007199254740992.0' is not written as a whole number"),
              [&] {
                TestRowsOfText("time:t@9007199254740993", "skip", {"1", "9007199254740992.0"});
              });
  ExpectError(ErrorCode::kData, HasSubstr("'20240105' is a number, which the value of --split is"),
              [&] {
                TestRowsOfText("time:t@2024-02-01", "skip", {"20240105", "20240205"});
              });
  EXPECT_EQ(TestRowsOfText("time:t@2024-02-01", "skip", {"2024-01-31", "nan", "2024-02-01"}),
            (std::set<int>{1, 2}));
}

TEST(RowSplit, WholeSeconds) {
  const std::string unix = "date, date: '%Q', parts: {day: {role: dense}}";
  EXPECT_EQ(TestRowsOfText("time:t@1709251200000", unix,
                           {"1709251199999", "1709251200000", "1709251200001"}),
            (std::set<int>{1, 2}));
  const std::string parts = "date, date: '%Y-%m-%d %H:%M:%S.%f', parts: {day: {role: dense}}";
  for (const auto& [value, described] :
       {std::pair("time:t@1709251200500", unix), std::pair("time:t@2024-03-01 00:00:00.5", parts),
        std::pair("time:t@2024-02-29 23:59:60.0", parts)})
    ExpectError(ErrorCode::kUsage, HasSubstr("must be a whole second"), [&] {
      TestRowsOfText(value, described, {"1709251200400", "1709251200600"});
    });
}

TEST(RowSplit, MissingValues) {
  for (const char* described : {"skip, missing: [none]", "categorical, missing: [none]"})
    ExpectError(ErrorCode::kData, HasSubstr("in0.csv:3: column 't': '' is missing"), [&] {
      TestRowsOfText("time:t@b", described, {"a", "none", "c"});
    });
  std::vector<std::string> fields = {"none", ""};
  for (int i = 0; i < 100; ++i) fields.push_back(fmt::format("u{}", i));
  for (const char* share : {"0.2", "0.4", "0.5", "0.6", "0.8"}) {
    const std::set<int> test =
        TestRowsOfText(fmt::format("group:t@{}", share), "skip, missing: [none]", fields);
    EXPECT_EQ(test.contains(0), test.contains(1)) << share;
  }
}

TEST(RowSplit, KeepsAllNegativesOfTheTest) {
  Csv csv(kSplitSchema, {AllRows()});
  csv.options.split = "time:n@200";
  csv.options.keep_negatives = 0.1;
  const ImportSummary summary = csv.Import();
  EXPECT_EQ(summary.test_rows, kSplitRows - 200);
  EXPECT_LT(summary.rows, 100);
  EXPECT_EQ(Dataset(csv.options.output + "/train").schema().negatives_kept, 0.1);
  EXPECT_EQ(Dataset(csv.options.output + "/test").schema().negatives_kept, 1);
}

TEST(RowSplit, NoNegativesOfTheTrainingSet) {
  Csv csv(kSplitSchema, {AllRows()});
  csv.options.split = "time:n@3";  // before it: labels 1, 0 and 0
  csv.options.keep_negatives = 1e-9;
  EXPECT_EQ(csv.Import().rows, 1);
  Csv none("columns:\n  y: {role: label}\n  n: {role: key}\n", {"y,n\n0,1\n0,2\n1,3\n"});
  none.options.split = "time:n@3";
  none.options.keep_negatives = 1e-9;
  ExpectError(ErrorCode::kData,
              HasSubstr("--keep-negatives kept 0 of 2 valid rows with label 0, and no training "
                        "row has another"),
              [&] { none.Import(); });
}

// The second day's rows are split with the constants and vocabularies of the first.
TEST(RowSplit, Grows) {
  Csv first(kSplitSchema, {AllRows()});
  first.Import();
  Csv second(kSplitSchema, {AllRows()});
  second.options.vocabulary = {};
  second.options.vocabulary_from = first.options.output;
  second.options.grow = true;
  second.options.split = "time:n@300";
  EXPECT_EQ(second.Import().rows, 300);
  const Dataset day(first.options.output);
  const Batch all = testing::ReadAll(day);
  for (const auto& [name, begin] :
       {std::pair("/train", size_t{0}), std::pair("/test", size_t{300})}) {
    const Dataset part(second.options.output + name);
    part.Verify();
    EXPECT_EQ(part.manifest().dense_transforms, day.manifest().dense_transforms);
    const Batch batch = testing::ReadAll(part);
    const std::vector<float> dense(batch.dense.begin(), batch.dense.end());
    const auto from = all.dense.begin() + static_cast<std::ptrdiff_t>(begin * 2);
    EXPECT_EQ(dense, std::vector<float>(from, from + std::ssize(dense))) << name;
  }
}

// What a killed import leaves is hidden, or the test set alone, which appears first.
TEST(RowSplit, AfterAKill) {
  Csv csv(kSplitSchema, {AllRows()});
  csv.options.split = "time:n@300";
  for (const char* name : {"/.train.partial", "/.test.partial"})
    CreateDirectories(csv.options.output + name);
  csv.Import();
  EXPECT_EQ(RowsIn(csv.options.output + "/test").size(), size_t{100});
  EXPECT_THAT(testing::NamesIn(csv.options.output), ::testing::ElementsAre("test", "train"));

  std::filesystem::remove_all(csv.options.output + "/train");
  ExpectError(ErrorCode::kCantCreate, HasSubstr("/out/test already exists: choose another name"),
              [&] { csv.Import(); });
  EXPECT_THAT(testing::NamesIn(csv.options.output), ::testing::ElementsAre("test"));
  Csv other(kSplitSchema, {AllRows()});
  other.Import();
  other.options.split = "time:n@300";
  ExpectError(ErrorCode::kCantCreate,
              HasSubstr("/out/dataset.yaml exists: --split makes a directory of two datasets"),
              [&] { other.Import(); });
}

TEST(RowSplit, WhatIsWrong) {
  const auto expect = [](const std::string& split, ErrorCode code, const std::string& message) {
    Csv csv(kSplitSchema, {AllRows()});
    csv.options.split = split;
    ExpectError(code, HasSubstr(message), [&] { csv.Import(); });
    EXPECT_FALSE(FileExists(csv.options.output));
  };
  for (const char* split : {"random", "random:0", "random:1", "random:x", "day:1", "time:day",
                            "time:@1", "group:user@", "group:user@2", ""})
    if (*split != '\0') expect(split, ErrorCode::kUsage, fmt::format("--split {}: must be", split));
  expect("group:usr@0.1", ErrorCode::kUsage, "no column 'usr'; did you mean 'user'?");
  expect("time:day@20240301", ErrorCode::kUsage, "'20240301' is not a date of the column's format");
  expect("time:day@2025-01-01", ErrorCode::kData,
         "puts all of 400 valid rows into the training set");
  expect("time:user@5", ErrorCode::kData, "in0.csv:2: column 'user': '' is missing");
}

}  // namespace
}  // namespace renzan
