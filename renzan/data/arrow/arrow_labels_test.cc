// Labels of tables: plain ones are taken without a text, all others are as in text files.

#include <cmath>

#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Bools;
using testing::Csv;
using ::testing::ElementsAre;
using testing::Encoded;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::Numbers;
using testing::TestArray;
using testing::TestStream;
using testing::TextsOf;

// The dataset of a table of labels and a feature.
Dataset DatasetOfLabels(const Csv& csv, const std::string& columns, std::vector<TestArray> labels) {
  const std::string schema = "columns:\n" + columns + "  x: {role: dense}\n";
  labels.push_back(
      Numbers("g", "x", std::vector<std::optional<double>>(static_cast<size_t>(labels[0].length))));
  std::vector<std::vector<TestArray>> batches;
  batches.push_back(std::move(labels));
  TestStream stream(std::move(batches));
  const auto source = MakeArrowSource(stream.get(), schema, "schema", Labels::kRequired);
  ImportRows(csv.options, *source);
  return Dataset(csv.options.output);
}

std::vector<float> ImportLabels(const std::string& rule, TestArray labels) {
  const Csv csv("columns: {y: {role: label}}\n", {});
  std::vector<TestArray> columns;
  columns.push_back(std::move(labels));
  return testing::ReadAll(
             DatasetOfLabels(csv, "  y: {role: label, " + rule + "}\n", std::move(columns)))
      .label;
}

TEST(ArrowLabels, FollowTheirRules) {
  const std::vector<float> expected = {1, 0, 1};
  EXPECT_EQ(ImportLabels("missing: []", Numbers<uint64_t>("L", "y", {1, 0, 1})), expected);
  EXPECT_EQ(ImportLabels("values: 0/1", Numbers<int8_t>("c", "y", {1, 0, 1})), expected);
  EXPECT_EQ(ImportLabels("missing: []", Bools("y", {true, false, true})), expected);
  EXPECT_EQ(ImportLabels("missing: []", Numbers<double>("g", "y", {1, 0, 1})), expected);
  EXPECT_EQ(ImportLabels("values: -1/1", Numbers<int8_t>("c", "y", {1, -1, 1})), expected);
  EXPECT_EQ(ImportLabels("values: no/yes", TextsOf<int32_t>("u", "y", {"Yes", "no", "YES"})),
            expected);
  EXPECT_EQ(ImportLabels("values: false/true", Bools("y", {true, false, true})), expected);
  EXPECT_EQ(ImportLabels("at_least: 3.5", Numbers<float>("f", "y", {4.0f, 1.0f, 3.5f})), expected);
  EXPECT_EQ(ImportLabels("at_least: 1", Numbers<int32_t>("i", "y", {1, 0, 1})), expected);
  EXPECT_EQ(ImportLabels("positive_above: 0", Bools("y", {true, false, true})), expected);
  EXPECT_EQ(ImportLabels("positive_above: 3", Numbers<int32_t>("i", "y", {4, 3, 5})), expected);
  EXPECT_EQ(ImportLabels("positive: '0', negative: other", Numbers<int32_t>("i", "y", {0, 1, 0})),
            expected);
  EXPECT_EQ(ImportLabels("positive: buy, negative: other",
                         Encoded("y", {0, 1, 0}, TextsOf<int32_t>("u", "", {"buy", "view"}))),
            expected);
  const std::vector<float> numbers = {4.5f, -1, 0.1f};
  EXPECT_EQ(ImportLabels("values: number", Numbers<double>("g", "y", {4.5, -1, 0.1})), numbers);
  EXPECT_EQ(ImportLabels("values: number", Numbers<float>("f", "y", {4.5f, -1.0f, 0.1f})), numbers);
  EXPECT_EQ(ImportLabels("values: number", Numbers<int64_t>("l", "y", {7, -3, 0})),
            std::vector<float>({7, -3, 0}));
}

TEST(ArrowLabels, ThoseThatAreNoneAreBadRows) {
  ExpectError(ErrorCode::kData, HasSubstr("row 1: column 1 (y): 'nan' is not a number from"), [&] {
    ImportLabels("values: number", Numbers<double>("g", "y", {1, std::nan(""), 2}));
  });
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("row 2: column 1 (y): '2' is not 0 or 1"), HasSubstr("on_bad_row")),
              [&] {
                ImportLabels("missing: []", Numbers<int64_t>("l", "y", {1, 0, 2}));
              });
  const auto missing = HasSubstr("row 1: column 1 (y): '' is not a label: it is missing");
  ExpectError(ErrorCode::kData, missing, [&] {
    ImportLabels("missing: []", Numbers<int64_t>("l", "y", {1, std::nullopt, 0}));
  });
  ExpectError(ErrorCode::kData, missing, [&] {
    ImportLabels("missing: []", Bools("y", {true, std::nullopt, false}));
  });
  ExpectError(ErrorCode::kData, missing, [&] {
    ImportLabels("missing: [\"0\"]", Numbers<int64_t>("l", "y", {1, 0, 1}));
  });
}

TEST(ArrowLabels, FurtherOnesMayBeNull) {
  const Csv csv("columns: {y: {role: label}}\n", {});
  std::vector<TestArray> columns;
  columns.push_back(Bools("y", {false, true, false, true}));
  columns.push_back(Numbers<int16_t>("s", "z", {1, std::nullopt, 0, 1}));
  const Dataset dataset = DatasetOfLabels(
      csv, "  y: {role: label}\n  z: {role: label, optional: true}\n", std::move(columns));
  EXPECT_THAT(testing::ReadAll(dataset).label, ElementsAre(0, 1, 0, 1, 1, IsNan(), 0, 1));
  const LabelEntry& z = dataset.manifest().further_label_entries.at("z");
  EXPECT_EQ(z.labelled_rows, 3);
  EXPECT_EQ(z.positive_rows, 2);
}

TEST(ArrowLabels, TheFirstMayBeNullAsInText) {
  const std::string schema =
      "  y: {role: label, optional: true}\n  z: {role: label, optional: true, values: number}\n";
  const Csv table("", {});
  std::vector<TestArray> columns;
  columns.push_back(Numbers<int16_t>("s", "y", {1, std::nullopt, 0, std::nullopt}));
  columns.push_back(Numbers<double>("g", "z", {std::nullopt, 2.5, -1, 0}));
  const Dataset of_table = DatasetOfLabels(table, schema, std::move(columns));
  EXPECT_THAT(testing::ReadAll(of_table).label,
              ElementsAre(1, IsNan(), 0, IsNan(), IsNan(), 2.5f, -1, 0));
  const Csv text("columns:\n" + schema + "  x: {role: dense}\n",
                 {"y,z,x\n1,,\n,2.5,\n0,-1,\n,0,\n"});
  text.Import();
  // As text has columns that are read in some way, only they differ.
  for (const char* file : {"label.npy", "further_labels.npy"})
    EXPECT_EQ(ReadFile(of_table.directory() + "/shard-00000/" + file),
              ReadFile(text.options.output + "/shard-00000/" + file));
  EXPECT_EQ(of_table.fingerprint(), Dataset(text.options.output).fingerprint());
}

TEST(ArrowLabels, ARowWithNoneIsBad) {
  const std::string schema =
      "  y: {role: label, optional: true}\n  z: {role: label, optional: true}\n";
  Csv csv("", {});
  const auto import = [&] {
    std::vector<TestArray> columns;
    columns.push_back(Numbers<int16_t>("s", "y", {1, std::nullopt, 0, std::nullopt, 1}));
    columns.push_back(Bools("z", {std::nullopt, true, std::nullopt, std::nullopt, false}));
    return testing::ReadAll(DatasetOfLabels(csv, schema, std::move(columns))).label;
  };
  ExpectError(ErrorCode::kData, HasSubstr("row 3: has none of the labels y, z"), import);
  csv.options.skip_bad_rows = true;
  EXPECT_THAT(import(), ElementsAre(1, IsNan(), 0, 1, IsNan(), 1, IsNan(), 0));
}

}  // namespace
}  // namespace renzan
