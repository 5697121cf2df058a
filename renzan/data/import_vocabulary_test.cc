// Vocabularies, as an import makes and reuses them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "renzan/data/criteo_testing.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

TEST(Vocabulary, HashesAreRemainders) {
  for (const uint64_t ids : {uint64_t{2}, uint64_t{3}, uint64_t{100'000}, uint64_t{1} << 32,
                             (uint64_t{1} << 48) - 1, uint64_t{1} << 48}) {
    Vocabulary vocabulary(fmt::format("hash:{}", ids));
    for (int i = 0; i < 1000; ++i) {
      const std::string value = fmt::format("value {}", i);
      EXPECT_EQ(static_cast<uint64_t>(vocabulary.Id(value, 0)),
                1 + XXH64(value.data(), value.size(), 0) % (ids - 1));
    }
  }
}

using ::testing::AllOf;
using testing::CriteoLine;
using testing::CriteoOptions;
using ::testing::ElementsAre;
using testing::ExpectError;
using testing::Hashed;
using ::testing::HasSubstr;
using testing::kCriteoLines;
using ::testing::Not;
using testing::ReadAll;
using testing::Repeat;
using testing::WriteText;

// Every value of C1 occurs many times, C2 has a new one in every other row, and C3 only new ones.
std::string ManyRows(int rows) {
  std::string text;
  for (int row = 0; row < rows; ++row)
    text += CriteoLine(row % 3 == 0 ? "1" : "0", {},
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

// What the row for unseen values is trained by is no secret.
TEST(ImportVocabulary, SaysWhichFeaturesTrainTheRowForUnseenValues) {
  TemporaryDirectory dir;
  WriteText(dir / "in", ManyRows(400));
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  options.vocabulary = {"hash:100", "C1=threshold:1", "C2=threshold:2"};
  const ImportSummary done = ImportDataset(options);
  ASSERT_EQ(done.trains_unseen.size(), 1u);  // half of C2's lookups are too rare anyway
  EXPECT_EQ(done.trains_unseen[0].feature, "C1");
  EXPECT_EQ(done.trains_unseen[0].share, Vocabulary::kUnseenShare);

  options.output = dir / "none";
  options.unseen = {"0"};
  EXPECT_TRUE(ImportDataset(options).trains_unseen.empty());

  options.output = dir / "test";
  options.unseen.clear();
  options.vocabulary.clear();
  options.vocabulary_from = dir / "out";
  EXPECT_TRUE(ImportDataset(options).trains_unseen.empty());
}

TEST(ImportVocabulary, ThresholdOrdersByCountThenFirstSeen) {
  TemporaryDirectory dir;
  std::string text;
  for (const char* value : {"aa", "bb", "cc", "bb", "dd", "dd", "", "aa", "ee", "dd"})
    text += CriteoLine("0", {}, {value, "ff"});
  WriteText(dir / "in", text);
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
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
  WriteText(dir / "test",
            CriteoLine("1", {}, {"bb", "ff", "0c"}) + CriteoLine("1", {}, {"99", "", "0c"}));
  ImportOptions test = CriteoOptions(dir, {dir / "test"});
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

TEST(ImportVocabulary, TheRowForUnseenValuesIsTrained) {
  TemporaryDirectory dir;
  constexpr int kRows = 5000;
  WriteText(dir / "in", ManyRows(kRows));
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
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

TEST(ImportVocabulary, WarnsOfAFeatureWhoseValuesAreNearlyAllRare) {
  TemporaryDirectory dir;
  WriteText(dir / "in", ManyRows(1000));
  WriteText(dir / "few", ManyRows(99));
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
  const auto log_of = [&](const std::string& name, std::vector<std::string> vocabulary) {
    options.output = dir / name;
    options.vocabulary = std::move(vocabulary);
    ::testing::internal::CaptureStderr();
    ImportDataset(options);
    return ::testing::internal::GetCapturedStderr();
  };
  // Half of the lookups of C2 are rare.
  EXPECT_THAT(
      log_of("rare", {"threshold:2"}),
      AllOf(HasSubstr("feature 'C3' cannot learn: 100 % of its lookups read the row for rare "
                      "values (threshold:2)"),
            HasSubstr("--vocabulary 'C3=hash:N'"), Not(HasSubstr("'C1'")), Not(HasSubstr("'C2'"))));
  EXPECT_THAT(log_of("hashed", {"threshold:2", "C3=hash:100"}), Not(HasSubstr("cannot learn")));
  EXPECT_THAT(log_of("own", {"threshold:1"}), Not(HasSubstr("cannot learn")));
  options.inputs = {dir / "few"};
  EXPECT_THAT(log_of("small", {"threshold:2"}), Not(HasSubstr("cannot learn")));
  // A test set trains nothing.
  options.inputs = {dir / "in"};
  options.vocabulary_from = dir / "rare";
  EXPECT_THAT(log_of("test", {}), Not(HasSubstr("cannot learn")));
}

TEST(ImportVocabulary, ATestSetSaysWhatTheVocabularyDoesNotKnow) {
  TemporaryDirectory dir;
  WriteText(dir / "train", ManyRows(1000));
  WriteText(dir / "test", Repeat(CriteoLine("1", {}, {"1", "1", "fffff"}) +
                                     CriteoLine("0", {}, {"2", "eeeee", ""}),
                                 50));
  ImportOptions train = CriteoOptions(dir, {dir / "train"});
  train.vocabulary = {"threshold:1", "C4=hash:100"};
  ImportOptions test = CriteoOptions(dir, {dir / "test"});
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

TEST(ImportVocabulary, ACorruptVocabularyIsNotUsed) {
  TemporaryDirectory dir;
  WriteText(dir / "in", kCriteoLines);
  ImportOptions options = CriteoOptions(dir, {dir / "in"});
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

}  // namespace
}  // namespace renzan
