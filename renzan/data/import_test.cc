#include "renzan/data/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmath>

#include "renzan/data/criteo_testing.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/synth/teacher_report.h"
#include "renzan/data/testing.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::CriteoLine;
using testing::CriteoOptions;
using ::testing::ElementsAre;
using testing::ExpectError;
using testing::Hashed;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kCriteoLines;
using testing::NamesIn;
using ::testing::Not;
using testing::ReadAll;
using testing::Repeat;
using testing::WriteText;

TEST(ImportCriteo, MissingAndNegativeValuesAndHashing) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.vocabulary = {"hash:5000", "C3=hash:10"};
  const ImportProgress done = ImportDataset(options);
  EXPECT_EQ(done.rows, 2);
  EXPECT_EQ(done.text_bytes, kCriteoLines.size());

  const Dataset dataset(dir / "out");
  dataset.Verify();
  EXPECT_EQ(dataset.schema().dense.size(), 13u);
  EXPECT_EQ(dataset.schema().categorical.size(), 26u);
  EXPECT_EQ(dataset.schema().categorical[0].num_embeddings, 5000);
  EXPECT_EQ(dataset.schema().categorical[2].num_embeddings, 10);
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.label, ElementsAre(1, 0));
  EXPECT_EQ(batch.dense[0], std::log(6.0f));  // log(x + 1)
  EXPECT_EQ(batch.dense[1], 0.0f);            // negative
  EXPECT_EQ(batch.dense[2], 0.0f);            // missing
  EXPECT_EQ(batch.dense[13 + 1], static_cast<float>(std::log(4.0)));
  EXPECT_THAT(batch.categorical[0].values,
              ElementsAre(Hashed("68fd1e64", 5000), Hashed("05db9164", 5000)));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(0, Hashed("80e26c9b", 5000)));
  EXPECT_THAT(batch.categorical[2].values,
              ElementsAre(Hashed("0b153874", 10), Hashed("0b153874", 10)));
  EXPECT_THAT(batch.categorical[25].values, ElementsAre(0, 0));
}

// A table of so many rows has ids of 64 bits; the ids of C2 are mapped at the end.
TEST(ImportCriteo, HashesToMoreIdsThan32Bits) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  constexpr int64_t kIds = int64_t{1} << 40;
  options.vocabulary = {fmt::format("hash:{}", kIds), "C2=threshold:1"};
  ImportDataset(options);
  const Dataset dataset(dir / "out");
  dataset.Verify();
  EXPECT_EQ(dataset.schema().categorical[0].num_embeddings, kIds);
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.categorical[0].values,
              ElementsAre(Hashed("68fd1e64", kIds), Hashed("05db9164", kIds)));
  EXPECT_GT(batch.categorical[0].values[0], int64_t{1} << 32);
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(0, 2));
  EXPECT_THAT(batch.categorical[25].values, ElementsAre(0, 0));
}

TEST(ImportCriteo, DenseNoneKeepsValues) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.log_dense = false;
  ImportDataset(options);
  const Batch batch = ReadAll(Dataset(dir / "out"));
  EXPECT_EQ(batch.dense[0], 5.0f);
  EXPECT_EQ(batch.dense[1], -2.0f);
  EXPECT_EQ(batch.dense[2], 0.0f);
}

TEST(ImportCriteo, ContainersFilesAndShardsDoNotChangeTheSamples) {
  TemporaryDirectory dir;
  const std::string text = Repeat(kCriteoLines, 50);
  WriteText(dir / "a", text);
  ImportOptions options = CriteoOptions(dir, {dir / "a"});
  ImportDataset(options);
  const std::string fingerprint = Dataset(dir / "out").fingerprint();
  WriteText(dir / "b.gz", Repeat(kCriteoLines, 20));
  WriteText(dir / "c.zst", Repeat(kCriteoLines, 30));
  options.inputs = {dir / "b.gz", dir / "c.zst"};
  options.output = dir / "out2";
  ImportDataset(options);
  EXPECT_EQ(Dataset(dir / "out2").fingerprint(), fingerprint);
  options.output = dir / "out3";
  options.shard_rows = 7;
  ImportDataset(options);
  EXPECT_EQ(ReadAll(Dataset(dir / "out3")).categorical[0].values,
            ReadAll(Dataset(dir / "out")).categorical[0].values);
}

TEST(ImportCriteo, BadRowsSayWhereAndWhy) {
  const struct {
    std::string line, message;
  } kCases[] = {
      {"hello\n", "in:3: 1 column separated by tabs instead of 40"},
      {CriteoLine("2", {}, {}), "in:3: column 1 (label): '2' is not 0 or 1"},
      {CriteoLine("", {}, {}), "in:3: column 1 (label): '' is not 0 or 1"},
      {CriteoLine("1", {"1", "x"}, {}), "in:3: column 3 (I2): 'x' is not a whole number"},
      {CriteoLine("1", {"1.5"}, {}), "in:3: column 2 (I1): '1.5' is not a whole number"},
      {CriteoLine("1", {"nan"}, {}), "in:3: column 2 (I1): 'nan' is not a whole number"},
      {CriteoLine("1", {"99999999999999999999"}, {}),
       "in:3: column 2 (I1): '99999999999999999999'"},
      {CriteoLine("1", {}, {"0b", "xyz"}), "in:3: column 16 (C2): 'xyz' is not hexadecimal"},
  };
  for (const auto& test : kCases) {
    TemporaryDirectory dir;
    WriteText(dir / "in", kCriteoLines + test.line + kCriteoLines);
    ImportOptions options = CriteoOptions(dir, {dir / "in"});
    ExpectError(ErrorCode::kData, AllOf(HasSubstr(test.message), HasSubstr("--on-bad-row skip")),
                [&] { ImportDataset(options); });
    EXPECT_THAT(NamesIn(dir.path()), ElementsAre("in")) << "something was left behind";

    options.skip_bad_rows = true;
    options.vocabulary = {"threshold:1"};
    const ImportProgress done = ImportDataset(options);
    EXPECT_EQ(done.rows, 4);
    EXPECT_EQ(done.bad_rows, 1);
    const Dataset dataset(dir / "out");
    EXPECT_EQ(dataset.num_rows(), 4);
    // The values of a skipped row are not counted.
    EXPECT_EQ(dataset.schema().categorical[0].num_embeddings, 4);
  }
}

TEST(ImportCriteo, SkippedRowsAreListedBesideTheManifest) {
  TemporaryDirectory dir;
  WriteText(dir / "a",
            kCriteoLines + "hello\n" + Repeat(kCriteoLines, 3) + CriteoLine("2", {}, {}));
  WriteText(dir / "b, \"c\".gz", Repeat("bad\n", 10) + kCriteoLines);
  WriteText(dir / "good", kCriteoLines);
  ImportOptions options = CriteoOptions(dir, {dir / "a", dir / "b, \"c\".gz"});
  options.skip_bad_rows = true;
  options.vocabulary = {"threshold:1"};
  const ImportSummary done = ImportDataset(options);
  EXPECT_EQ(done.bad_rows, 12);
  EXPECT_EQ(done.skipped_rows, dir / "out/skipped_rows.csv");
  std::string expected = fmt::format(
      "file,line,reason\n"
      "{0}/a,3,1 column separated by tabs instead of 40\n"
      "{0}/a,10,column 1 (label): '2' is not 0 or 1\n",
      dir.path());
  for (int line = 1; line <= 10; ++line)
    expected += fmt::format("\"{}/b, \"\"c\"\".gz\",{},1 column separated by tabs instead of 40\n",
                            dir.path(), line);
  EXPECT_EQ(ReadFile(done.skipped_rows), expected);
  const Dataset dataset(dir / "out");
  dataset.Verify();
  EXPECT_EQ(dataset.num_rows(), 10);

  // None, if there is nothing to list.
  options.inputs = {dir / "good"};
  options.output = dir / "all";
  EXPECT_EQ(ImportDataset(options).skipped_rows, "");
  EXPECT_FALSE(FileExists(dir / "all/skipped_rows.csv"));
}

TEST(ImportCriteo, WarnsOfManyBadRows) {
  TemporaryDirectory dir;
  const auto log_of = [&](int bad, int good, const std::string& name, double share) {
    WriteText(dir / name, Repeat("bad\n", bad) + Repeat(CriteoLine("1", {}, {}), good));
    ImportOptions options = CriteoOptions(dir, {dir / name});
    options.output = dir / (name + ".out");
    options.skip_bad_rows = true;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(ImportDataset(options).bad_share(), share);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(log_of(80, 20, "a", 0.8),
              HasSubstr("80 % of the rows are bad; the first: " + dir / "a" + ":1: 1 column"));
  EXPECT_THAT(log_of(10, 90, "b", 0.1), HasSubstr("10 % of the rows are bad"));
  EXPECT_THAT(log_of(9, 91, "c", 0.09), Not(HasSubstr("of the rows are bad")));
}

TEST(ImportCriteo, UnlabelledFilesGetAHint) {
  TemporaryDirectory dir;
  WriteText(dir / "test.txt", kCriteoLines.substr(2));
  ImportOptions options = CriteoOptions(dir, {dir / "test.txt"});
  for (bool skip : {false, true}) {
    options.skip_bad_rows = skip;
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("test.txt:1"), HasSubstr("without labels"),
                      HasSubstr("needs --vocabulary-from TRAINING_DATA")),
                [&] { ImportDataset(options); });
  }
}

TEST(ImportCriteo, NoValidRowsAndNoRowsAtAll) {
  TemporaryDirectory dir;
  WriteText(dir / "in", "x\ny\n");
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.skip_bad_rows = true;
  ExpectError(ErrorCode::kData, HasSubstr("no valid rows"), [&] { ImportDataset(options); });
  WriteText(dir / "empty", "");
  options.inputs = {dir / "empty"};
  ExpectError(ErrorCode::kData, HasSubstr("no rows in " + dir / "empty"),
              [&] { ImportDataset(options); });
  EXPECT_THAT(NamesIn(dir.path()), Not(::testing::Contains(HasSubstr("out"))));
}

// The file that lists them goes with a dataset that is not made.
TEST(ImportCriteo, BadRowsThatAreNotShownAreListedOnlyInADataset) {
  TemporaryDirectory dir;
  WriteText(dir / "in", Repeat("x\n", 10));
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.skip_bad_rows = true;
  ::testing::internal::CaptureStderr();
  ExpectError(ErrorCode::kData, HasSubstr("no valid rows"), [&] { ImportDataset(options); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("further bad rows are not shown; a finished dataset lists all in "
                        "skipped_rows.csv"));
}

TEST(ImportCriteo, InterruptedImportLeavesNothingAndCanBeRepeated) {
  TemporaryDirectory dir;
  WriteText(dir / "in", Repeat(kCriteoLines, 10000));
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.shard_rows = 1000;
  int64_t seen = 0;
  options.progress = [&](const ImportProgress& progress) { seen = progress.rows; };
  options.stop = [&] { return seen > 8000; };
  ExpectError(ErrorCode::kTempFail, HasSubstr("stopped"), [&] { ImportDataset(options); });
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("in"));

  // A killed import could not clean up.
  CreateDirectories(dir / ".out.partial/shard-00000");
  WriteFileAtomically(dir / ".out.partial/shard-00000/label.npy", "half");
  options.stop = nullptr;
  EXPECT_EQ(ImportDataset(options).rows, 20000);
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("in", "out"));
  Dataset(dir / "out").Verify();
  ExpectError(ErrorCode::kCantCreate, HasSubstr("already exists"), [&] { ImportDataset(options); });
}

TEST(ImportCriteo, FullDiskLeavesNothing) {
  TemporaryDirectory dir;
  CreateDirectories(dir / "small");
  if (::mount("tmpfs", (dir / "small").c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "not permitted to mount a tmpfs here";
  WriteText(dir / "in", Repeat(kCriteoLines, 10000));
  for (const char* vocabulary : {"hash:100", "threshold:1"}) {
    ImportOptions options = CriteoOptions(dir, {dir / "in"});
    options.output = dir / "small/out";
    options.vocabulary = {vocabulary};
    ExpectError(ErrorCode::kIo, HasSubstr("No space left"), [&] { ImportDataset(options); });
    EXPECT_THAT(NamesIn(dir / "small"), IsEmpty());
  }
  EXPECT_EQ(::umount((dir / "small").c_str()), 0);
}

TEST(ImportCriteo, ATestSetNeedsTheTransformsOfTheTrainingSet) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.output = dir / "train";
  options.vocabulary = {"threshold:1"};
  ImportDataset(options);
  const Dataset train(dir / "train");
  EXPECT_EQ(train.schema().dense_transforms, std::vector<std::string>(13, "log"));

  options.output = dir / "test";
  options.vocabulary = {};
  options.vocabulary_from = dir / "train";
  options.log_dense = false;
  ExpectError(ErrorCode::kConfig, HasSubstr("'I1' was imported into"),
              [&] { ImportDataset(options); });
  options.log_dense = true;
  ImportDataset(options);
  // The same values have the same ids in both, and both record it.
  EXPECT_EQ(Dataset(dir / "test").schema().categorical[0].vocabulary,
            train.schema().categorical[0].vocabulary);
  options.output = dir / "other";
  options.vocabulary = {"threshold:2"};
  options.vocabulary_from = "";
  ImportDataset(options);
  EXPECT_NE(Dataset(dir / "other").schema().categorical[0].vocabulary,
            train.schema().categorical[0].vocabulary);
}

TEST(ImportCriteo, WrongOptions) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  const auto with = [&](auto change) {
    ImportOptions options = CriteoOptions(dir, {dir / "in"});
    change(options);
    return [options] { ImportDataset(options); };
  };
  const auto vocabulary = [&](std::vector<std::string> specs) {
    return with([&](ImportOptions& options) { options.vocabulary = specs; });
  };
  for (const char* spec :
       {"hash", "hash:1", "hash:", "hash:x", "threshold:0", "words:7", "hash:999999999999999"})
    ExpectError(ErrorCode::kUsage, HasSubstr("must be hash:N"), vocabulary({spec}));
  ExpectError(ErrorCode::kUsage, HasSubstr("did you mean 'C13'?"), vocabulary({"C133=hash:9"}));
  for (const char* list : {"threshold:2,C13=hash:9", "C13=hash:9,threshold:2"})
    ExpectError(ErrorCode::kUsage,
                AllOf(HasSubstr("repeat the flag for each of them: --vocabulary "),
                      HasSubstr("--vocabulary C13=hash:9")),
                vocabulary({list}));
  const auto unseen = [&](std::vector<std::string> shares, std::vector<std::string> specs) {
    return with([&](ImportOptions& options) {
      options.unseen = shares;
      options.vocabulary = specs;
    });
  };
  for (const char* share : {"", "x", "1", "-0.1", "nan"})
    ExpectError(ErrorCode::kUsage, HasSubstr("from 0 to less than 1"),
                unseen({share}, {"threshold:1"}));
  ExpectError(ErrorCode::kUsage, HasSubstr("did you mean 'C13'?"),
              unseen({"C133=0.1"}, {"threshold:1"}));
  ExpectError(ErrorCode::kUsage, HasSubstr("all of them are hashed"), unseen({"0.1"}, {}));
  ExpectError(ErrorCode::kUsage, HasSubstr("feature 'C2' is hashed (hash:9)"),
              unseen({"C2=0.1"}, {"threshold:1", "C2=hash:9"}));
  ExpectError(ErrorCode::kUsage, HasSubstr("--unseen and --vocabulary-from"),
              with([](ImportOptions& options) {
                options.unseen = {"0.1"};
                options.vocabulary_from = "/none";
              }));
  ExpectError(ErrorCode::kUsage, HasSubstr("unknown format"),
              with([](ImportOptions& options) { options.format = "parquet"; }));
  ExpectError(ErrorCode::kUsage, HasSubstr("needs --schema"),
              with([](ImportOptions& options) { options.format = "csv"; }));
  ExpectError(ErrorCode::kUsage, HasSubstr("--dense is only for --format criteo"),
              with([](ImportOptions& options) {
                options.format = "csv";
                options.schema = "schema.yaml";
                options.log_dense = true;
              }));
  ExpectError(ErrorCode::kUsage, HasSubstr("no input"),
              with([](ImportOptions& options) { options.inputs.clear(); }));
  ExpectError(ErrorCode::kNoInput, HasSubstr("is not a dataset"),
              with([](ImportOptions& options) { options.vocabulary_from = "/none"; }));
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("in"));
}

TEST(ImportCriteo, ImportsTheGeneratorsReport) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  WriteTeacherReport(dir / "in", 2, 1, 0, {0.75, 0.5});
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  ImportDataset(options);
  const Dataset dataset(dir / "out");
  ASSERT_TRUE(dataset.bayes_optimal().has_value());
  EXPECT_EQ(dataset.bayes_optimal()->best_auc, 0.75);
  EXPECT_EQ(dataset.bayes_optimal()->best_log_loss, 0.5);
  WriteTeacherReport(dir / "in", 3, 1, 0, {0.75, 0.5});
  options.output = dir / "again";
  ExpectError(ErrorCode::kData, HasSubstr("describes 3 rows"), [&] { ImportDataset(options); });
}

// From the README of the files: rows, and how many of them are clicks.
TEST(ImportCriteo, RealFiles) {
  const struct {
    const char* file;
    int64_t rows, positive;
  } kFiles[] = {
      {"criteo_kaggle_head10k/train_head10000.txt.gz", 10000, 2182},
      {"criteo_kaggle_random/train_random4584.txt.gz", 4584, 1231},
      {"criteo_kaggle_random/train_random45k_7cat.txt.gz", 45840, 11764},
      {"criteo_1tb_day0/day_0.part10000.txt.gz", 10000, 265},
  };
  for (const auto& file : kFiles) {
    SKIP_WITHOUT_SHARED_DATA(file.file);
    TemporaryDirectory dir;
    ImportOptions options = CriteoOptions(dir, {testing::SharedData(file.file)});
    options.vocabulary = {"threshold:2"};
    ImportDataset(options);
    const Dataset dataset(dir / "out");
    dataset.Verify();
    EXPECT_EQ(dataset.num_rows(), file.rows);
    double positive = 0;
    for (float label : ReadAll(dataset).label) positive += label;
    EXPECT_EQ(positive, static_cast<double>(file.positive));
  }
  TemporaryDirectory dir;
  const std::string unlabelled =
      testing::SharedData("criteo_kaggle_head10k/test_head10000_unlabelled.txt.gz");
  ExpectError(ErrorCode::kData, HasSubstr("without labels"),
              [&] { ImportDataset(CriteoOptions(dir, {unlabelled})); });
}

}  // namespace
}  // namespace renzan
