// Sequences and features that share a table, as an import makes them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"
#include "renzan/data/vocabularies_from.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;
using testing::WriteText;

constexpr char kSequenceRows[] =
    "y,item,clicked\n"
    "1,b,a|b|c\n"
    "0,a,\n"
    "1,c,b|d|a|c\n";

struct SequenceInput {
  TemporaryDirectory dir;
  ImportOptions options;

  explicit SequenceInput(const std::string& clicked, const char* rows = kSequenceRows) {
    WriteText(dir / "in.csv", rows);
    WriteFileAtomically(dir / "schema.yaml",
                        "columns:\n"
                        "  y: {role: label}\n"
                        "  item: {role: categorical}\n"
                        "  clicked: {role: multi_hot" +
                            clicked + "}\n");
    options.inputs = {dir / "in.csv"};
    options.output = dir / "out";
    options.format = "csv";
    options.schema = dir / "schema.yaml";
    options.vocabulary = {"threshold:1"};
    options.unseen = {"0"};
  }
};

// Ids are in the order of counts over both columns, then of first appearance: b 3, a 3, c 3, d 1.
TEST(ImportSequences, ShareTheVocabularyOfTheirTable) {
  SequenceInput input(", table: item, max_length: 4");
  ImportDataset(input.options);
  const Dataset dataset(input.options.output);
  const DatasetSchema& schema = dataset.schema();
  EXPECT_EQ(schema.categorical[1].table_name(), "item");
  EXPECT_EQ(schema.categorical[1].max_length, 4);
  EXPECT_EQ(schema.categorical[0].num_embeddings, 6);  // missing, rare and four values
  EXPECT_EQ(schema.categorical[1].num_embeddings, 6);
  EXPECT_EQ(schema.categorical[0].vocabulary, schema.categorical[1].vocabulary);
  EXPECT_EQ(dataset.manifest().format_version, kSequencesFormatVersion);
  EXPECT_EQ(dataset.manifest().vocabulary.size(), 2u);  // one vocabulary's files
  const std::vector<std::string> values =
      ReadVocabularyValues(input.options.output, dataset.manifest(), "clicked");
  EXPECT_THAT(values, ElementsAre("b", "a", "c", "d"));
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 4));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(3, 2, 4, 2, 5, 3, 4));
  EXPECT_THAT(batch.categorical[1].offsets, ElementsAre(0, 3, 3, 7));
}

TEST(ImportSequences, KeepTheNewestOrTheOldestValues) {
  for (const std::string keep : {"newest", "oldest"}) {
    SequenceInput input(", max_length: 2, keep: " + keep);
    ImportDataset(input.options);
    const Dataset dataset(input.options.output);
    std::vector<std::string> kept;
    const std::vector<std::string> values =
        ReadVocabularyValues(input.options.output, dataset.manifest(), "clicked");
    const Batch batch = ReadAll(dataset);
    for (const int64_t id : batch.categorical[1].values)
      kept.push_back(values[static_cast<size_t>(id - Vocabulary::kFirstOwn)]);
    if (keep == "newest") {
      EXPECT_THAT(kept, ElementsAre("b", "c", "a", "c"));
    } else {
      EXPECT_THAT(kept, ElementsAre("a", "b", "b", "d"));
    }
  }
}

TEST(ImportSequences, LongerOnesAreErrorsUnlessSaid) {
  SequenceInput input(", max_length: 3");
  ExpectError(ErrorCode::kData,
              HasSubstr("in.csv:4: column 3 (clicked): a sequence of 4 values, but max_length is "
                        "3; 'keep: newest' or 'keep: oldest' in the schema shortens it"),
              [&] { ImportDataset(input.options); });
}

TEST(ImportSequences, LaterDataUseTheSharedVocabulary) {
  SequenceInput input(", table: item, max_length: 4");
  ImportDataset(input.options);
  ImportOptions later = input.options;
  WriteText(input.dir / "later.csv", "y,item,clicked\n1,d,e|a\n");
  later.inputs = {input.dir / "later.csv"};
  later.output = input.dir / "later";
  later.vocabulary.clear();
  later.unseen.clear();
  later.vocabulary_from = input.options.output;
  ImportDataset(later);
  const Batch batch = ReadAll(Dataset(later.output));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(5));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(Vocabulary::kRare, 3));

  // Read once.
  DatasetSchema same = Dataset(input.options.output).schema();
  const std::vector<Vocabulary> vocabularies = TakeVocabularies(later, &same);
  EXPECT_EQ(vocabularies.at(0).values().size(), 4u);
  EXPECT_EQ(vocabularies.at(1).values().size(), 0u);

  later.output = input.dir / "grown";
  later.grow = true;
  ImportDataset(later);
  const Dataset grown(later.output);
  EXPECT_EQ(grown.schema().categorical[0].num_embeddings, 7);
  EXPECT_EQ(grown.schema().categorical[1].num_embeddings, 7);
}

// Other programs tell from the version what a dataset needs, whatever else it has.
TEST(ImportSequences, KeepTheirFormatVersionBesideInputRows) {
  SequenceInput skipped(", table: item", "y,item,clicked\n1,b,a|b\nbad,b,b\n0,a,a\n");
  skipped.options.skip_bad_rows = true;
  ImportDataset(skipped.options);
  EXPECT_EQ(ReadManifest(skipped.options.output).format_version, kSequencesFormatVersion);

  SequenceInput split(", max_length: 4");
  split.options.split = "time:item@c";
  ImportDataset(split.options);
  for (const char* name : {"/train", "/test"})
    EXPECT_EQ(ReadManifest(split.options.output + name).format_version, kSequencesFormatVersion);
}

TEST(ImportSequences, TakeSettingsOfTheirTableOnly) {
  SequenceInput input(", table: item, unseen: 0.1");
  input.options.unseen.clear();
  ExpectError(ErrorCode::kConfig, HasSubstr("shares the table and vocabulary of 'item'"),
              [&] { ImportDataset(input.options); });
  SequenceInput other(", table: item");
  other.options.vocabulary = {"clicked=hash:10"};
  ExpectError(ErrorCode::kUsage, HasSubstr("shares the table and vocabulary of 'item': name that"),
              [&] { ImportDataset(other.options); });
  SequenceInput typo(", table: itme");
  ExpectError(ErrorCode::kConfig,
              HasSubstr("feature 'clicked' has the table 'itme', which no other has: did you mean "
                        "'item'?"),
              [&] { ImportDataset(typo.options); });
  SequenceInput chain(", table: item");
  WriteFileAtomically(chain.dir / "schema.yaml",
                      "columns:\n"
                      "  y: {role: categorical, table: clicked}\n"
                      "  item: {role: label, values: no/yes}\n"
                      "  clicked: {role: multi_hot, table: other}\n");
  ExpectError(ErrorCode::kConfig, HasSubstr("the feature of that name has the table 'other'"),
              [&] { ImportDataset(chain.options); });
  SequenceInput wrong(", keep: newest");
  ExpectError(ErrorCode::kConfig, HasSubstr("needs max_length"),
              [&] { ImportDataset(wrong.options); });
}

}  // namespace
}  // namespace renzan
