#include "renzan/data/input_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;

const char kInputRowsSchema[] = "columns:\n  y: {role: label}\n  x: {role: dense}\n";

std::vector<int64_t> Numbers(const std::string& directory) {
  const Dataset dataset(directory);
  dataset.Verify();
  const InputRows rows(dataset);
  std::vector<int64_t> numbers;
  for (int64_t row = 0; row < dataset.num_rows(); ++row) numbers.push_back(rows.Of(row));
  return numbers;
}

TEST(InputRows, CountSkippedRowsOverAllFiles) {
  Csv csv(kInputRowsSchema, {"y,x\n0,0\n1,bad\n\n0,2\n0,3\n", "y,x\n1,bad\n1,bad\n0,6\n1,bad\n"});
  csv.options.skip_bad_rows = true;
  csv.options.shard_rows = 2;
  EXPECT_EQ(csv.Import().bad_rows, 4);
  EXPECT_THAT(Numbers(csv.options.output), ElementsAre(0, 2, 3, 6));
  const DatasetManifest manifest = ReadManifest(csv.options.output);
  EXPECT_EQ(manifest.skipped_rows, 4);
  EXPECT_EQ(manifest.format_version, kKeysFormatVersion);
}

// As pandas counts them.
TEST(InputRows, ARowOfSeveralLinesCountsOnce) {
  Csv csv("columns:\n  id: {role: key}\n  note: {role: skip}\n  y: {role: label}\n",
          {"id,note,y\na,\"one\ntwo\",1\nb,\"one\ntwo\",?\nc,\"one\ntwo\",0\n"});
  csv.options.skip_bad_rows = true;
  EXPECT_EQ(csv.Import().bad_rows, 1);
  EXPECT_THAT(Numbers(csv.options.output), ElementsAre(0, 2));
  EXPECT_THAT(ReadFile(csv.options.output + "/skipped_rows.csv"),
              HasSubstr("in0.csv,4,\"column 3 (y): '?' is not 0 or 1"));
}

TEST(InputRows, WithoutSkippedRowsThereIsNoFile) {
  Csv csv(kInputRowsSchema, {"y,x\n0,0\n1,1\n"});
  csv.options.skip_bad_rows = true;
  csv.Import();
  EXPECT_THAT(Numbers(csv.options.output), ElementsAre(0, 1));
  EXPECT_FALSE(FileExists(csv.options.output + "/" + kInputRowsName));
  EXPECT_EQ(ReadManifest(csv.options.output).format_version, kDatasetFormatVersion);
}

TEST(InputRows, CountNegativesThatAreLeftOut) {
  std::string text = "y,x\n";
  for (int row = 0; row < 3000; ++row)
    text +=
        fmt::format("{},{}\n", row % 5 == 0 ? 1 : 0, row % 11 == 5 ? "bad" : std::to_string(row));
  Csv csv(kInputRowsSchema, {text});
  csv.options.skip_bad_rows = true;
  csv.options.keep_negatives = 0.5;
  csv.options.shard_rows = 100;
  csv.Import();
  const Batch batch = ReadAll(Dataset(csv.options.output));
  const std::vector<int64_t> numbers = Numbers(csv.options.output);
  ASSERT_EQ(numbers.size(), batch.dense.size());
  for (size_t row = 0; row < numbers.size(); ++row)
    ASSERT_EQ(numbers[row], static_cast<int64_t>(batch.dense[row])) << row;
}

// Earlier versions did not record which rows they left out.
TEST(InputRows, OfEarlierVersions) {
  TemporaryDirectory dir;
  Csv csv(kInputRowsSchema, {"y,x\n0,0\n1,bad\n0,2\n"});
  csv.options.skip_bad_rows = true;
  csv.Import();
  const std::string& out = csv.options.output;
  std::string yaml = ReadFile(out + "/dataset.yaml");
  const size_t begin = yaml.find("skipped_rows:");
  testing::RewriteManifest(out, yaml.substr(begin, yaml.rfind("xxh128:") - begin), "");
  testing::RewriteManifest(out, "format_version: 5", "format_version: 2");
  ExpectError(ErrorCode::kConfig, HasSubstr("import the data again"),
              [&] { InputRows rows{Dataset(out)}; });
  std::filesystem::remove(out + "/skipped_rows.csv");
  EXPECT_THAT(Numbers(out), ElementsAre(0, 1));

  csv.options.output = dir / "kept";
  csv.options.keep_negatives = 1;
  WriteFileAtomically(csv.options.schema, "negatives_kept: 0.5\n" + std::string(kInputRowsSchema));
  csv.options.skip_bad_rows = false;
  WriteFileAtomically(csv.options.inputs[0], "y,x\n0,0\n1,1\n");
  csv.Import();
  EXPECT_THAT(Numbers(dir / "kept"), ElementsAre(0, 1));  // the input was downsampled before
}

TEST(InputRows, Corruption) {
  Csv csv(kInputRowsSchema, {"y,x\n0,0\n1,bad\n0,2\n"});
  csv.options.skip_bad_rows = true;
  csv.Import();
  const Dataset dataset(csv.options.output);
  const std::string path = csv.options.output + "/" + kInputRowsName;
  std::string bytes = ReadFile(path);
  bytes.back() = 1;
  WriteFileAtomically(path, bytes);
  ExpectError(ErrorCode::kData, HasSubstr("input_rows.npy is corrupt"),
              [&] { InputRows rows(dataset); });
  ExpectError(ErrorCode::kData, HasSubstr("input_rows.npy"), [&] { dataset.Verify(); });
}

}  // namespace
}  // namespace renzan
