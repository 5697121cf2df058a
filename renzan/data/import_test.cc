#include "renzan/data/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmath>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/synth/teacher_report.h"
#include "renzan/data/testing.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NamesIn;
using ::testing::Not;
using testing::ReadAll;
using testing::Repeat;
using testing::WriteText;

// A Criteo line: I1..I13 and C1..C26 are empty unless given.
std::string Line(const std::string& label, std::vector<std::string> dense,
                 std::vector<std::string> categorical) {
  dense.resize(13);
  categorical.resize(26);
  return fmt::format("{}\t{}\t{}\n", label, fmt::join(dense, "\t"), fmt::join(categorical, "\t"));
}

const std::string kLines = Line("1", {"5", "-2", "", "0"}, {"68fd1e64", "", "0b153874"}) +
                           Line("0", {"", "3"}, {"05db9164", "80e26c9b", "0b153874"});

ImportOptions Options(const TemporaryDirectory& dir, std::vector<std::string> inputs) {
  ImportOptions options;
  options.inputs = std::move(inputs);
  options.output = dir / "out";
  return options;
}

int64_t Hashed(const std::string& value, uint64_t n) {
  return static_cast<int64_t>(1 + XXH64(value.data(), value.size(), 0) % (n - 1));
}

TEST(ImportCriteo, MissingAndNegativeValuesAndHashing) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kLines);
  ImportOptions options = Options(dir, {dir / "in"});
  options.vocabulary = {"hash:5000", "C3=hash:10"};
  const ImportProgress done = ImportDataset(options);
  EXPECT_EQ(done.rows, 2);
  EXPECT_EQ(done.text_bytes, kLines.size());

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
  WriteText(dir / "in", kLines);
  ImportOptions options = Options(dir, {dir / "in"});
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
  WriteText(dir / "in", kLines);
  ImportOptions options = Options(dir, {dir / "in"});
  options.log_dense = false;
  ImportDataset(options);
  const Batch batch = ReadAll(Dataset(dir / "out"));
  EXPECT_EQ(batch.dense[0], 5.0f);
  EXPECT_EQ(batch.dense[1], -2.0f);
  EXPECT_EQ(batch.dense[2], 0.0f);
}

TEST(ImportCriteo, ThresholdOrdersByCountThenFirstSeen) {
  TemporaryDirectory dir;
  std::string text;
  for (const char* value : {"aa", "bb", "cc", "bb", "dd", "dd", "", "aa", "ee", "dd"})
    text += Line("0", {}, {value, "ff"});
  WriteText(dir / "in", text);
  ImportOptions options = Options(dir, {dir / "in"});
  options.vocabulary = {"C1=threshold:2", "C2=threshold:11"};
  options.shard_rows = 3;
  ImportDataset(options);
  const Dataset dataset(dir / "out");
  dataset.Verify();
  // dd 3 times: 2; aa and bb twice, aa first: 3, 4; cc and ee rare: 1; missing: 0.
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(3, 4, 1, 4, 2, 2, 0, 3, 1, 2));
  EXPECT_EQ(dataset.schema().categorical[0].num_embeddings, 5);
  EXPECT_EQ(dataset.schema().categorical[1].num_embeddings, 2);  // no value is frequent enough
  EXPECT_EQ(batch.categorical[1].values[0], 1);
  EXPECT_EQ(dataset.schema().categorical[2].num_embeddings, 100000);  // the default, hashed
  EXPECT_THAT(ReadVocabularyValues(dir / "out", ReadManifest(dir / "out"), "C1"),
              ElementsAre("dd", "aa", "bb"));

  // A test set: known values keep their ids, new ones are rare.
  WriteText(dir / "test", Line("1", {}, {"bb", "ff", "0c"}) + Line("1", {}, {"99", "", "0c"}));
  ImportOptions test = Options(dir, {dir / "test"});
  test.output = dir / "test.out";
  test.vocabulary_from = dir / "out";
  ImportDataset(test);
  const Dataset applied(dir / "test.out");
  applied.Verify();
  const Batch test_batch = ReadAll(applied);
  EXPECT_THAT(test_batch.categorical[0].values, ElementsAre(4, 1));
  EXPECT_THAT(test_batch.categorical[1].values, ElementsAre(1, 0));
  EXPECT_EQ(test_batch.categorical[2].values[0], Hashed("0c", 100000));
  EXPECT_EQ(applied.schema().categorical[0].num_embeddings, 5);
}

// Every value of C1 occurs many times, C2 has a new one in every other row, and C3 only new ones.
std::string ManyRows(int rows) {
  std::string text;
  for (int row = 0; row < rows; ++row)
    text += Line(row % 3 == 0 ? "1" : "0", {},
                 {fmt::format("{:x}", row % 40), fmt::format("{:x}", row % 2 == 0 ? row : 1),
                  fmt::format("{:x}", row)});
  return text;
}

// The rows whose id of feature f is that of unseen values.
std::vector<size_t> UnseenRows(const Batch& batch, size_t f) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < batch.label.size(); ++row)
    if (batch.categorical[f].values[row] == Vocabulary::kRare) rows.push_back(row);
  return rows;
}

TEST(ImportCriteo, TheRowForUnseenValuesIsTrained) {
  TemporaryDirectory dir;
  constexpr int kRows = 5000;
  WriteText(dir / "in", ManyRows(kRows));
  ImportOptions options = Options(dir, {dir / "in"});
  const auto import = [&](const std::string& name, std::vector<std::string> vocabulary,
                          std::vector<std::string> unseen) {
    options.output = dir / name;
    options.vocabulary = std::move(vocabulary);
    options.unseen = std::move(unseen);
    ImportDataset(options);
    const Dataset dataset(options.output);
    dataset.Verify();
    return ReadAll(dataset);
  };
  const auto recorded = [&](const std::string& name, const char* feature) {
    return ReadManifest(dir / name).features.at(feature).unseen;
  };

  // By default, a hundredth of the lookups of a value, which keeps its own row for the others.
  const Batch usual = import("usual", {"threshold:1"}, {});
  const std::vector<size_t> chosen = UnseenRows(usual, 0);
  EXPECT_GT(chosen.size(), kRows / 200u);
  EXPECT_LT(chosen.size(), kRows / 50u);
  EXPECT_EQ(recorded("usual", "C1"), 0.01);
  EXPECT_EQ(Dataset(dir / "usual").schema().categorical[0].num_embeddings, 40 + 2);
  // Different rows of another feature; what has only one row loses that.
  EXPECT_NE(UnseenRows(usual, 2), chosen);
  EXPECT_EQ(Dataset(dir / "usual").schema().categorical[2].num_embeddings,
            2 + kRows - std::ssize(UnseenRows(usual, 2)));

  // Where enough values are below the threshold, they train the row.
  const Batch rare = import("rare", {"threshold:2"}, {});
  EXPECT_EQ(UnseenRows(rare, 0), chosen);
  EXPECT_EQ(recorded("rare", "C1"), 0.01);
  EXPECT_EQ(recorded("rare", "C2"), 0);
  EXPECT_EQ(UnseenRows(rare, 1).size(), kRows / 2u);

  // As given, for all features or one.
  const Batch given = import("given", {"threshold:2"}, {"0", "C2=0.25"});
  EXPECT_TRUE(UnseenRows(given, 0).empty());
  EXPECT_EQ(recorded("given", "C1"), 0);
  EXPECT_EQ(recorded("given", "C2"), 0.25);
  EXPECT_NEAR(static_cast<double>(UnseenRows(given, 1).size()), (0.5 + 0.5 * 0.25) * kRows,
              0.02 * kRows);

  // The same rows whatever the shards, and others with another seed.
  options.shard_rows = 777;
  EXPECT_EQ(UnseenRows(import("shards", {"threshold:1"}, {}), 0), chosen);
  options.seed = 1;
  EXPECT_NE(UnseenRows(import("seed", {"threshold:1"}, {}), 0), chosen);
}

TEST(ImportCriteo, ATestSetSaysWhatTheVocabularyDoesNotKnow) {
  TemporaryDirectory dir;
  WriteText(dir / "train", ManyRows(1000));
  WriteText(dir / "test",
            Repeat(Line("1", {}, {"1", "1", "fffff"}) + Line("0", {}, {"2", "eeeee", ""}), 50));
  ImportOptions train = Options(dir, {dir / "train"});
  train.vocabulary = {"threshold:1", "C4=hash:100"};
  ImportOptions test = Options(dir, {dir / "test"});
  test.output = dir / "test.out";
  test.vocabulary_from = train.output;
  const auto import_test = [&] {
    ::testing::internal::CaptureStderr();
    const ImportSummary done = ImportDataset(test);
    return std::pair(done, ::testing::internal::GetCapturedStderr());
  };

  EXPECT_TRUE(ImportDataset(train).unseen.empty());
  const auto [done, log] = import_test();
  ASSERT_EQ(done.unseen.size(), 25u);  // without C4
  EXPECT_EQ(done.unseen[0].feature, "C1");
  EXPECT_EQ(done.unseen[0].lookups, 100);
  EXPECT_EQ(done.unseen[0].unseen, 0);  // no known value is mapped here
  EXPECT_EQ(done.unseen[1].share(), 0.5);
  EXPECT_EQ(done.unseen[2].lookups, 50);  // without missing ones
  EXPECT_EQ(done.unseen[2].share(), 1);
  EXPECT_EQ(done.unseen[3].feature, "C5");
  EXPECT_THAT(log, Not(HasSubstr("unseen")));
  EXPECT_EQ(Dataset(test.output).schema().categorical[0].vocabulary,
            Dataset(train.output).schema().categorical[0].vocabulary);

  // A dataset whose row nothing has trained.
  train.output = dir / "without";
  train.unseen = {"0"};
  ImportDataset(train);
  test.vocabulary_from = train.output;
  test.output = dir / "test.without";
  EXPECT_THAT(import_test().second,
              HasSubstr("C2, C3: values that the training data lacks use the embedding for unseen "
                        "values, which no row of"));
}

TEST(ImportCriteo, ContainersFilesAndShardsDoNotChangeTheSamples) {
  TemporaryDirectory dir;
  const std::string text = Repeat(kLines, 50);
  WriteText(dir / "a", text);
  ImportOptions options = Options(dir, {dir / "a"});
  ImportDataset(options);
  const std::string fingerprint = Dataset(dir / "out").fingerprint();
  WriteText(dir / "b.gz", Repeat(kLines, 20));
  WriteText(dir / "c.zst", Repeat(kLines, 30));
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
      {"hello\n", "in:3: 1 columns separated by tabs instead of 40"},
      {Line("2", {}, {}), "in:3: column 1 (label): '2' is not 0 or 1"},
      {Line("", {}, {}), "in:3: column 1 (label): '' is not 0 or 1"},
      {Line("1", {"1", "x"}, {}), "in:3: column 3 (I2): 'x' is not a whole number"},
      {Line("1", {"1.5"}, {}), "in:3: column 2 (I1): '1.5' is not a whole number"},
      {Line("1", {"nan"}, {}), "in:3: column 2 (I1): 'nan' is not a whole number"},
      {Line("1", {"99999999999999999999"}, {}), "in:3: column 2 (I1): '99999999999999999999'"},
      {Line("1", {}, {"0b", "xyz"}), "in:3: column 16 (C2): 'xyz' is not hexadecimal"},
  };
  for (const auto& test : kCases) {
    TemporaryDirectory dir;
    WriteText(dir / "in", kLines + test.line + kLines);
    ImportOptions options = Options(dir, {dir / "in"});
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
  WriteText(dir / "a", kLines + "hello\n" + Repeat(kLines, 3) + Line("2", {}, {}));
  WriteText(dir / "b, \"c\".gz", Repeat("bad\n", 10) + kLines);
  WriteText(dir / "good", kLines);
  ImportOptions options = Options(dir, {dir / "a", dir / "b, \"c\".gz"});
  options.skip_bad_rows = true;
  options.vocabulary = {"threshold:1"};
  const ImportSummary done = ImportDataset(options);
  EXPECT_EQ(done.bad_rows, 12);
  EXPECT_EQ(done.skipped_rows, dir / "out/skipped_rows.csv");
  std::string expected = fmt::format(
      "file,line,reason\n"
      "{0}/a,3,1 columns separated by tabs instead of 40\n"
      "{0}/a,10,column 1 (label): '2' is not 0 or 1\n",
      dir.path());
  for (int line = 1; line <= 10; ++line)
    expected += fmt::format("\"{}/b, \"\"c\"\".gz\",{},1 columns separated by tabs instead of 40\n",
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

TEST(ImportCriteo, UnlabelledFilesGetAHint) {
  TemporaryDirectory dir;
  WriteText(dir / "test.txt", kLines.substr(2));
  ImportOptions options = Options(dir, {dir / "test.txt"});
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
  ImportOptions options = Options(dir, {dir / "in"});
  options.skip_bad_rows = true;
  ExpectError(ErrorCode::kData, HasSubstr("no valid rows"), [&] { ImportDataset(options); });
  WriteText(dir / "empty", "");
  options.inputs = {dir / "empty"};
  ExpectError(ErrorCode::kData, HasSubstr("no valid rows"), [&] { ImportDataset(options); });
  EXPECT_THAT(NamesIn(dir.path()), Not(::testing::Contains(HasSubstr("out"))));
}

TEST(ImportCriteo, InterruptedImportLeavesNothingAndCanBeRepeated) {
  TemporaryDirectory dir;
  WriteText(dir / "in", Repeat(kLines, 10000));
  ImportOptions options = Options(dir, {dir / "in"});
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
  WriteText(dir / "in", Repeat(kLines, 10000));
  for (const char* vocabulary : {"hash:100", "threshold:1"}) {
    ImportOptions options = Options(dir, {dir / "in"});
    options.output = dir / "small/out";
    options.vocabulary = {vocabulary};
    ExpectError(ErrorCode::kIo, HasSubstr("No space left"), [&] { ImportDataset(options); });
    EXPECT_THAT(NamesIn(dir / "small"), IsEmpty());
  }
  EXPECT_EQ(::umount((dir / "small").c_str()), 0);
}

TEST(ImportCriteo, ATestSetNeedsTheTransformsOfTheTrainingSet) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kLines);
  ImportOptions options = Options(dir, {dir / "in"});
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

TEST(ImportCriteo, ACorruptVocabularyIsNotUsed) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kLines);
  ImportOptions options = Options(dir, {dir / "in"});
  options.output = dir / "train";
  options.vocabulary = {"threshold:1"};
  ImportDataset(options);
  const std::string path = dir / "train/vocabulary/C1.values.npy";
  std::string bytes = ReadFile(path);
  bytes.back() ^= 1;
  WriteFileAtomically(path, bytes);
  options.output = dir / "test";
  options.vocabulary = {};
  options.vocabulary_from = dir / "train";
  ExpectError(ErrorCode::kData, HasSubstr("C1.values.npy is corrupt"),
              [&] { ImportDataset(options); });
}

TEST(ImportCriteo, WrongOptions) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kLines);
  const auto with = [&](auto change) {
    ImportOptions options = Options(dir, {dir / "in"});
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
  WriteText(dir / "in", kLines);
  WriteTeacherReport(dir / "in", 2, 1, 0, {0.75, 0.5});
  ImportOptions options = Options(dir, {dir / "in"});
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
    ImportOptions options = Options(dir, {testing::SharedData(file.file)});
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
              [&] { ImportDataset(Options(dir, {unlabelled})); });
}

}  // namespace
}  // namespace renzan
