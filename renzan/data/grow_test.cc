// Vocabularies that grow from one day's data to the next, and rows that follow their values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/data/known_ids.h"
#include "renzan/data/row_origins.h"
#include "renzan/data/testing.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadAll;
using ::testing::UnorderedElementsAre;
using testing::WriteText;

constexpr char kGrowSchema[] =
    "columns:\n"
    "  y: {role: label}\n"
    "  x: {role: dense, transform: standardize}\n"
    "  c: {role: categorical}\n"
    "  tags: {role: multi_hot}\n";

// Days of a table: a row for each of the values of c, given as letters; '-' is missing.
class Days {
 public:
  Days() { WriteText(dir_ / "schema.yaml", kGrowSchema); }

  std::string operator/(const std::string& name) const { return dir_ / name; }

  ImportOptions Options(const std::string& name, const std::string& values) const {
    std::string text = "y,x,c,tags\n";
    for (size_t row = 0; row < values.size(); ++row)
      text += fmt::format("{},{},{},{}\n", row % 2, row,
                          values[row] == '-' ? "" : std::string(1, values[row]),
                          row % 2 == 0 ? fmt::format("t{}|{}", values[row], values[row]) : "");
    WriteText(dir_ / (name + ".csv"), text);
    ImportOptions options;
    options.inputs = {dir_ / (name + ".csv")};
    options.output = dir_ / name;
    options.format = "csv";
    options.schema = dir_ / "schema.yaml";
    options.unseen = {"0"};
    return options;
  }
  void ImportFirst(const std::string& name, const std::string& values,
                   const std::string& vocabulary = "threshold:1") const {
    ImportOptions options = Options(name, values);
    options.vocabulary = {vocabulary};
    if (vocabulary.starts_with("hash")) options.unseen = {};
    ImportDataset(options);
  }
  ImportSummary Grow(const std::string& name, const std::string& values,
                     const std::string& from) const {
    ImportOptions options = Options(name, values);
    options.vocabulary_from = dir_ / from;
    options.grow = true;
    const ImportSummary done = ImportDataset(options);
    Dataset(options.output).Verify();
    return done;
  }

  std::vector<std::string> Values(const std::string& name, const std::string& feature = "c") const {
    return ReadVocabularyValues(dir_ / name, ReadManifest(dir_ / name), feature);
  }
  RowOrigins Origins(const std::string& name, const std::string& earlier,
                     const std::string& feature = "c") const {
    const DatasetManifest manifest = ReadManifest(dir_ / earlier);
    return Origins(name,
                   {.vocabulary = manifest.VocabularyIdentity(feature),
                    .num_embeddings = manifest.features.at(feature).num_embeddings,
                    .dataset = dir_ / earlier},
                   feature);
  }
  RowOrigins Origins(const std::string& name, const EarlierTable& earlier,
                     const std::string& feature = "c") const {
    return OriginsOfRows(dir_ / name, ReadManifest(dir_ / name), feature, earlier);
  }

 private:
  TemporaryDirectory dir_;
};

std::vector<int64_t> IdsOf(const std::string& directory, size_t feature = 0) {
  const auto values = ReadAll(Dataset(directory)).categorical[feature].values;
  return {values.begin(), values.end()};
}

TEST(Grow, NewValuesGetTheNextIdsDayAfterDay) {
  const Days days;
  days.ImportFirst("1", "baab-c");
  EXPECT_THAT(days.Values("1"), ElementsAre("b", "a", "c"));

  // c does not occur, e is more frequent than d, and f comes after d.
  const ImportSummary done = days.Grow("2", "deea-fb", "1");
  EXPECT_THAT(days.Values("2"), ElementsAre("b", "a", "c", "e", "d", "f"));
  EXPECT_THAT(IdsOf(days / "2"), ElementsAre(6, 5, 5, 3, 0, 7, 2));
  ASSERT_EQ(done.grown.size(), 2u);
  EXPECT_EQ(done.grown[0].feature, "c");
  EXPECT_EQ(done.grown[0].values, 6);
  EXPECT_EQ(done.grown[0].added, 3);
  EXPECT_EQ(done.grown[0].absent, 1);
  EXPECT_THAT(done.unseen, IsEmpty());
  EXPECT_EQ(Dataset(days / "2").schema().categorical[0].num_embeddings, 8);
  // The values of bags grow too, and constants of transforms stay.
  EXPECT_EQ(days.Values("2", "tags").size(), days.Values("1", "tags").size() + 4);
  EXPECT_EQ(ReadManifest(days / "2").dense_transforms, ReadManifest(days / "1").dense_transforms);

  EXPECT_EQ(days.Grow("3", "gab", "2").grown[0].absent, 4);
  EXPECT_THAT(days.Values("3"), ElementsAre("b", "a", "c", "e", "d", "f", "g"));
  // The same again, and without new values nothing changes.
  days.Grow("2 again", "deea-fb", "1");
  EXPECT_EQ(Dataset(days / "2 again").fingerprint(), Dataset(days / "2").fingerprint());
  EXPECT_EQ(days.Grow("no new one", "abc", "1").grown[0].added, 0);
  EXPECT_EQ(ReadManifest(days / "no new one").VocabularyIdentity("c"),
            ReadManifest(days / "1").VocabularyIdentity("c"));
}

TEST(Grow, TheThresholdCountsNewDataAndOldValuesStay) {
  const Days days;
  days.ImportFirst("1", "aabb", "threshold:2");
  days.Grow("2", "acccd", "1");
  EXPECT_THAT(days.Values("2"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(IdsOf(days / "2"), ElementsAre(2, 4, 4, 4, 1));
  EXPECT_EQ(ReadManifest(days / "2").features.at("c").vocabulary, "threshold:2");
}

// It is training data, so it trains the row for unseen values.
TEST(Grow, TrainsTheRowForUnseenValues) {
  const Days days;
  days.ImportFirst("1", "ab");
  std::string values;
  for (int row = 0; row < 2000; ++row) values += static_cast<char>('a' + row % 4);
  ImportOptions options = days.Options("2", values);
  options.vocabulary_from = days / "1";
  options.grow = true;
  options.unseen = {};
  ImportDataset(options);
  const std::vector<int64_t> ids = IdsOf(days / "2");
  const int64_t unseen = std::count(ids.begin(), ids.end(), Vocabulary::kRare);
  EXPECT_GT(unseen, 0);
  EXPECT_LT(unseen, 100);
  EXPECT_EQ(ReadManifest(days / "2").features.at("c").unseen, Vocabulary::kUnseenShare);
  EXPECT_THAT(days.Values("2"), UnorderedElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(days.Values("2")[0], days.Values("1")[0]);
}

// The third day, once with the vocabularies of each day before it.
TEST(KnownIds, AreThoseOfAnImportWithTheEarlierVocabulary) {
  const Days days;
  days.ImportFirst("1", "aabbb-c");
  days.Grow("2", "deea-fb", "1");
  std::vector<Batch> read;
  for (const char* from : {"1", "2"}) {
    ImportOptions options = days.Options(std::string("3 as ") + from, "abc-defg");
    options.vocabulary_from = days / from;
    options.unseen = {};
    ImportDataset(options);
    EXPECT_TRUE(ReadManifest(options.output).vocabularies_reused);
    read.push_back(ReadAll(Dataset(options.output)));
  }
  std::vector<KnownIds::Feature> features;
  const Dataset first(days / "1");
  for (const CategoricalFeature& feature : first.schema().categorical)
    features.push_back({feature.num_embeddings, HasUnseenRow(feature.vocabulary)});
  ASSERT_NE(read[0].categorical[0].values, read[1].categorical[0].values);
  // Samples that only fill a batch are mapped, but not counted: not the second d in the bag of row
  // 4, nor what follows it.
  KnownIds known(features);
  known.MapUnknown(4, &read[1]);
  EXPECT_EQ(known.unseen(), 0);
  const int64_t lookups = known.lookups();
  EXPECT_GT(lookups, 0);
  for (size_t f = 0; f < features.size(); ++f) {
    EXPECT_EQ(read[0].categorical[f].values, read[1].categorical[f].values);
    EXPECT_EQ(read[0].categorical[f].offsets, read[1].categorical[f].offsets);
  }
  Batch again = ReadAll(Dataset(days / "3 as 2"));
  known.MapUnknown(again.size, &again);
  // d, e, f, and g, which is unseen in both; a bag of two d, and one of two f, unseen in both.
  EXPECT_EQ(known.unseen(), 4 + 2 + 2);
}

// Row 1 of a feature whose values were hashed, or were ids already, is a value's own.
TEST(KnownIds, CountOnlyRowsForUnseenValues) {
  EXPECT_TRUE(HasUnseenRow("threshold:1:abc"));
  EXPECT_FALSE(HasUnseenRow("hash:1000"));
  EXPECT_FALSE(HasUnseenRow("ids"));
  EXPECT_EQ(FirstKnownId("threshold:1:abc"), 2);
  EXPECT_EQ(FirstKnownId("hash:1000"), 1);
  EXPECT_EQ(FirstKnownId("ids"), 0);
  Batch batch;
  batch.size = 3;
  for (int f = 0; f < 2; ++f) batch.categorical.push_back({.values = {1, 9, 2}, .offsets = {}});
  KnownIds known(
      {{.num_ids = 5, .has_unseen_row = true}, {.num_ids = 10, .has_unseen_row = false}});
  known.MapUnknown(3, &batch);
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(1, 1, 2));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(1, 9, 2));
  EXPECT_EQ(known.unseen(), 2);
  EXPECT_EQ(known.lookups(), 6);
}

TEST(KnownIds, AVocabularyBeginsWithTheEarlierOneOnlyIfIdsStayed) {
  const Days days;
  days.ImportFirst("1", "aab");
  days.Grow("grown", "cab", "1");
  days.ImportFirst("renumbered", "cccbba");
  days.ImportFirst("hashed", "ab", "hash:10");
  const auto begins_with = [&](const std::string& name, const std::string& earlier) {
    const DatasetManifest there = ReadManifest(days / earlier);
    return VocabularyBeginsWith(days / name, ReadManifest(days / name), "c",
                                there.VocabularyIdentity("c"),
                                there.features.at("c").num_embeddings);
  };
  EXPECT_TRUE(begins_with("grown", "1"));
  EXPECT_TRUE(begins_with("1", "1"));
  EXPECT_FALSE(begins_with("1", "grown"));
  EXPECT_FALSE(begins_with("renumbered", "1"));
  EXPECT_FALSE(begins_with("hashed", "hashed"));
  EXPECT_FALSE(ReadManifest(days / "grown").vocabularies_reused);
}

TEST(Grow, NeedsADatasetAndItsPreprocessing) {
  const Days days;
  days.ImportFirst("1", "ab");
  ImportOptions options = days.Options("2", "abc");
  options.grow = true;
  ExpectError(ErrorCode::kUsage, HasSubstr("--vocabulary-from"), [&] { ImportDataset(options); });
  options.vocabulary_from = days / "1";
  options.vocabulary = {"threshold:2"};
  ExpectError(ErrorCode::kUsage, HasSubstr("cannot be combined"), [&] { ImportDataset(options); });
  options.vocabulary = {};
  std::string other = kGrowSchema;
  other.replace(other.find("standardize"), std::string("standardize").size(), "log");
  options.schema = days / "other.yaml";
  WriteText(options.schema, other);
  ExpectError(ErrorCode::kConfig, HasSubstr("transform"), [&] { ImportDataset(options); });
  EXPECT_FALSE(FileExists(days / "2"));
  // Hashed features do not grow, which the summary says.
  options.schema = days / "schema.yaml";
  days.ImportFirst("hashed", "ab", "hash:10");
  options.vocabulary_from = days / "hashed";
  options.unseen = {};
  EXPECT_THAT(ImportDataset(options).grown, IsEmpty());
}

TEST(RowOrigins, AGrownVocabularyNeedsNoEarlierDataset) {
  const Days days;
  days.ImportFirst("1", "abc");
  days.Grow("2", "acde", "1");
  days.Grow("3", "f", "2");
  const DatasetManifest first = ReadManifest(days / "1");
  const RowOrigins origins = days.Origins(
      "3",
      {.vocabulary = first.VocabularyIdentity("c"), .num_embeddings = 5, .dataset = "is gone"});
  EXPECT_EQ(origins.rows, 8);
  EXPECT_EQ(origins.same, 5);
  EXPECT_EQ(origins.Of(4), 4);
  EXPECT_EQ(origins.Of(5), -1);
  EXPECT_EQ(origins.taken(), 5);
  EXPECT_EQ(origins.added(), 3);
  EXPECT_EQ(origins.dropped(), 0);
}

TEST(RowOrigins, RowsFollowTheirValuesToOtherPlaces) {
  const Days days;
  days.ImportFirst("1", "aaabbc");
  days.ImportFirst("2", "dddbba");
  EXPECT_THAT(days.Values("2"), ElementsAre("d", "b", "a"));
  const RowOrigins origins = days.Origins("2", "1");
  EXPECT_EQ(origins.same, 2);  // missing and unseen values
  EXPECT_THAT(origins.others, ElementsAre(-1, 3, 2));
  EXPECT_EQ(origins.taken(), 4);
  EXPECT_EQ(origins.added(), 1);
  EXPECT_EQ(origins.dropped(), 1);  // c
  // The reverse, and what both begin with.
  EXPECT_THAT(days.Origins("1", "2").others, ElementsAre(4, 3, -1));
  days.ImportFirst("3", "aaabbd");
  EXPECT_EQ(days.Origins("3", "1").same, 4);
}

TEST(RowOrigins, OfHashesAndIds) {
  const Days days;
  days.ImportFirst("hashed", "abc", "hash:10");
  days.ImportFirst("same", "de", "hash:10");
  days.ImportFirst("other", "abc", "hash:11");
  days.ImportFirst("named", "abc");
  EXPECT_EQ(days.Origins("same", "hashed").same, 10);
  for (const char* other : {"other", "named"})
    ExpectError(ErrorCode::kConfig, AllOf(HasSubstr("'c'"), HasSubstr("hash:10")),
                [&] { days.Origins(other, "hashed"); });
  DatasetManifest ids;
  ids.features["c"] = {.num_embeddings = 12, .multi_hot = false, .vocabulary = "", .unseen = 0};
  const RowOrigins more =
      OriginsOfRows("ids", ids, "c", {.vocabulary = "ids", .num_embeddings = 10, .dataset = ""});
  EXPECT_EQ(more.taken(), 10);
  EXPECT_EQ(more.added(), 2);
  EXPECT_EQ(OriginsOfRows("ids", ids, "c", {"ids", 15, ""}).dropped(), 3);
}

TEST(RowOrigins, WithoutTheEarlierValues) {
  const Days days;
  days.ImportFirst("1", "aaabbc");
  days.ImportFirst("2", "dddbba");
  const EarlierTable earlier{.vocabulary = ReadManifest(days / "1").VocabularyIdentity("c"),
                             .num_embeddings = 5,
                             .dataset = days / "gone"};
  ExpectError(ErrorCode::kNoInput, AllOf(HasSubstr("gone"), HasSubstr("--grow")),
              [&] { days.Origins("2", earlier); });
  ExpectError(ErrorCode::kConfig, HasSubstr("has others now"), [&] {
    days.Origins("2", {earlier.vocabulary, earlier.num_embeddings, days / "2"});
  });
}

}  // namespace
}  // namespace renzan
