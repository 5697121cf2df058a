// Keys: columns whose texts are kept for predictions.

#include "renzan/data/key_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;

const char kKeyedSchema[] =
    "columns:\n"
    "  request: {role: key}\n"
    "  y: {role: label}\n"
    "  user: {role: categorical, key: true}\n"
    "  when: {role: date, date: \"%Y-%m-%d\", key: true, parts: {day: {role: dense}}}\n";

std::vector<std::string> Texts(const std::string& directory, const std::string& key) {
  const Dataset dataset(directory);
  const KeyColumn column(dataset, key, 0, dataset.num_rows());
  std::vector<std::string> texts;
  for (int64_t row = 0; row < dataset.num_rows(); ++row) texts.emplace_back(column.Text(row));
  return texts;
}

// Texts of any bytes, over several shards, files and orders of columns.
TEST(KeyColumn, KeepsTheTextsUnchanged) {
  Csv csv(kKeyedSchema, {"request,y,user,when\n"
                         "a-1,0,u,2024-01-01\n"
                         "\" a \"\"b\"\",\nc\",1,v,2024-01-02\n"
                         ",0,,\n"
                         "?\xff NA,1,u,2024-01-03\n",
                         "when,y,request,user\n2024-01-04,0,last,w\n"});
  csv.options.shard_rows = 2;
  csv.Import();
  const std::string& out = csv.options.output;
  EXPECT_THAT(Texts(out, "request"), ElementsAre("a-1", " a \"b\",\nc", "", "?\xff NA", "last"));
  EXPECT_THAT(Texts(out, "user"), ElementsAre("u", "v", "", "u", "w"));
  EXPECT_THAT(Texts(out, "when"),
              ElementsAre("2024-01-01", "2024-01-02", "", "2024-01-03", "2024-01-04"));
  const Dataset dataset(out);
  EXPECT_EQ(KeyColumn(dataset, "request", 1, 3).Text(2), "");
  EXPECT_TRUE(KeyColumn(dataset, "request", 0, 3).are_utf8());
  EXPECT_FALSE(KeyColumn(dataset, "request", 0, 4).are_utf8());
  // No features.
  EXPECT_THAT(dataset.schema().dense, ElementsAre("when.day"));
  EXPECT_EQ(dataset.schema().categorical.size(), 1u);
  EXPECT_EQ(ReadAll(dataset).size, 5);
  const DatasetManifest manifest = ReadManifest(out);
  EXPECT_EQ(manifest.format_version, kKeysFormatVersion);
  EXPECT_THAT(manifest.keys, ElementsAre("request", "user", "when"));
}

// Texts that mean missing are kept, too; `trim` is how fields are read.
TEST(KeyColumn, IsTheFieldAsItIsRead) {
  Csv csv("trim: true\nmissing: [\"?\"]\ncolumns:\n  y: {role: label}\n  \"k*\": {role: key}\n",
          {"y,k2,k1\n0, a ,?\n1,\" b \",\n"});
  csv.Import();
  EXPECT_THAT(Texts(csv.options.output, "k2"), ElementsAre("a", " b "));
  EXPECT_THAT(Texts(csv.options.output, "k1"), ElementsAre("?", ""));
}

TEST(KeyColumn, FollowsTheRowsThatAreKept) {
  std::string text = "request,y,user,when\n", expected;
  for (int row = 0; row < 1000; ++row)
    text += row % 7 == 3 ? fmt::format("r{},maybe,u,2024-01-01\n", row)
                         : fmt::format("r{},{},u,2024-01-0{}\n", row, row % 2, 1 + row % 9);
  Csv csv(kKeyedSchema, {text});
  csv.options.skip_bad_rows = true;
  csv.options.keep_negatives = 0.3;
  csv.options.shard_rows = 64;
  csv.Import();
  const Dataset dataset(csv.options.output);
  const std::vector<std::string> requests = Texts(csv.options.output, "request");
  const Batch batch = ReadAll(dataset);
  ASSERT_GT(requests.size(), 400u);
  ASSERT_LT(requests.size(), 700u);
  for (size_t row = 0; row < requests.size(); ++row) {
    const int number = std::stoi(requests[row].substr(1));
    EXPECT_NE(number % 7, 3);
    EXPECT_EQ(batch.label[row], static_cast<float>(number % 2));
    EXPECT_EQ(batch.dense[row], static_cast<float>(19723 + number % 9));  // days since 1970
  }
}

// The same samples have the same meaning with keys and without.
TEST(KeyColumn, IsNoPartOfTheFingerprint) {
  const std::string rows = "request,y,user,when\na,0,u,2024-01-01\nb,1,v,2024-01-02\n";
  std::string without = kKeyedSchema;
  without.replace(without.find("role: key"), 9, "role: skip");
  for (size_t at; (at = without.find(", key: true")) != std::string::npos;) without.erase(at, 11);
  const Csv keyed(kKeyedSchema, {rows}), plain(without, {rows});
  keyed.Import();
  plain.Import();
  const Dataset a(keyed.options.output), b(plain.options.output);
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.schema().parsing, b.schema().parsing);
  EXPECT_EQ(b.manifest().format_version, kDatasetFormatVersion);
  // A test set may have keys that its training set lacks, and the reverse.
  for (const auto& [training, test] : {std::pair(&keyed, &plain), std::pair(&plain, &keyed)}) {
    Csv set(ReadFile(test->options.schema), {rows});
    set.options.vocabulary.clear();
    set.options.vocabulary_from = training->options.output;
    EXPECT_EQ(set.Import().rows, 2);
  }
}

// The label and the weight may be missing where only predictions are made; so may their texts.
TEST(KeyColumn, OfALabelThatIsMissing) {
  const std::string schema =
      "columns:\n  y: {role: label, values: no/yes, key: true}\n  x: {role: dense}\n";
  const Csv training(schema, {"y,x\nYES,1\nno,2\n"});
  training.Import();
  EXPECT_THAT(Texts(training.options.output, "y"), ElementsAre("YES", "no"));
  Csv test(schema, {"x\n1\n"});
  test.options.vocabulary.clear();
  test.options.vocabulary_from = training.options.output;
  test.Import();
  EXPECT_TRUE(ReadManifest(test.options.output).keys.empty());
}

TEST(KeyColumn, Corruption) {
  const Csv csv(kKeyedSchema, {"request,y,user,when\na,0,u,2024-01-01\nb,1,v,2024-01-02\n"});
  csv.Import();
  const std::string& out = csv.options.output;
  const Dataset dataset(out);
  const std::string path = out + "/shard-00000/request.key.npy";
  std::string bytes = ReadFile(path);
  bytes.back() = 'x';
  WriteFileAtomically(path, bytes);
  ExpectError(ErrorCode::kData, HasSubstr("request.key.npy is corrupt"),
              [&] { KeyColumn(dataset, "request", 0, 2); });
  ExpectError(ErrorCode::kData, HasSubstr("request.key.npy: SHA-256"), [&] { dataset.Verify(); });
  EXPECT_EQ(ReadAll(dataset).size, 2);  // training does not read it
  testing::RewriteManifest(out, "format_version: 5", "format_version: 11\nfuture: 1");
  ExpectError(ErrorCode::kData, HasSubstr("is 11, but this program reads versions 1 to 10"),
              [&] { Dataset later(out); });
}

TEST(KeyColumn, WrongSchemas) {
  const auto error_of = [](const std::string& column, const std::string& message) {
    ExpectError(ErrorCode::kConfig, HasSubstr(message),
                [&] { Csv("columns:\n  y: {role: label}\n  " + column, {"y,x\n0,1\n"}).Import(); });
  };
  error_of("x: {role: skip, key: true}", "has role: key");
  error_of("x: {role: key, key: true}", "has role: key");
  error_of("x: {role: key, transform: log}", "belongs to role dense");
  error_of("z: {role: key}", "is not in");
  error_of("x: {role: dense}\n  z: {role: key}", "has no column 'z'");
}

}  // namespace
}  // namespace renzan
