// Columns of vectors, and numbers that become categories, as an import of text makes them.

#include <gmock/gmock.h>

#include "renzan/data/inspect.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Not;

std::string VectorSchema(const std::string& more) {
  return "columns:\n  y: {role: label}\n  text: {role: dense, dimension: 3" + more +
         "}\n  x: {role: dense}\n";
}

TEST(ImportVectors, BecomeDenseFeaturesThatKnowTheirName) {
  const Csv csv(VectorSchema(""), {"y,text,x\n1,1|-2.5|3e2,7\n0,,8\n"});
  EXPECT_THAT(csv.Read().dense, ElementsAre(1, -2.5, 300, 7, 0, 0, 0, 8));
  const Dataset dataset(csv.options.output);
  EXPECT_THAT(dataset.schema().dense, ElementsAre("text.0", "text.1", "text.2", "x"));
  ASSERT_EQ(dataset.schema().vectors.size(), 1u);
  EXPECT_EQ(dataset.schema().vectors[0].name, "text");
  EXPECT_EQ(dataset.schema().vectors[0].first, 0u);
  EXPECT_EQ(dataset.schema().vectors[0].dimension, 3);
  EXPECT_EQ(dataset.manifest().format_version, kLabelsAndVectorsFormatVersion);
  EXPECT_EQ(dataset.schema().parsing.at("text"), kPlainParsing);
}

// Others keep the version that older programs read, and say nothing of vectors.
TEST(ImportVectors, LeaveOtherDatasetsAsTheyWere) {
  const Csv csv("columns: {y: {role: label}, text: {role: dense}}\n", {"y,text\n1,2\n"});
  csv.Import();
  const std::string manifest = ReadFile(csv.options.output + "/dataset.yaml");
  EXPECT_THAT(manifest, AllOf(HasSubstr("format_version: 2"), Not(HasSubstr("vectors"))));
}

TEST(ImportVectors, ArriveInListsOfAllForms) {
  const Csv brackets(VectorSchema(", brackets: true"),
                     {"y,text,x\n1,\"[1, 2,3]\",0\n0,\"[4,5,6]\",0\n"});
  EXPECT_THAT(brackets.Read().dense, ElementsAre(1, 2, 3, 0, 4, 5, 6, 0));
  const Csv numpy(VectorSchema(", brackets: true, separator: ' '"),
                  {"y,text,x\n1,[ 1.  2.5 -3. ],0\n"});
  EXPECT_THAT(numpy.Read().dense, ElementsAre(1, 2.5, -3, 0));
  EXPECT_EQ(Dataset(numpy.options.output).schema().parsing.at("text"), "brackets, separator ' '");
  const Csv tabs("delimiter: tab\n" + VectorSchema(", separator: ','"),
                 {"y\ttext\tx\n1\t1,2,3\t0\n"});
  EXPECT_THAT(tabs.Read().dense, ElementsAre(1, 2, 3, 0));
}

TEST(ImportVectors, AreTransformedNumberByNumber) {
  const Csv csv(VectorSchema(", transform: standardize, clip: [-100, 100]"),
                {"y,text,x\n1,1|10|500,0\n0,3|10|100,0\n0,,0\n"});
  EXPECT_THAT(csv.Read().dense, ElementsAre(-1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Dataset(csv.options.output).schema().dense_transforms,
              ElementsAre("clip:-100:100,standardize:2:1", "clip:-100:100,standardize:10:0",
                          "clip:-100:100,standardize:100:0", "none"));
  const Csv filled(VectorSchema(", transform: minmax, fill: mean"),
                   {"y,text,x\n1,0|0|4,0\n0,2|0|8,0\n0,,0\n"});
  EXPECT_THAT(filled.Read().dense, ElementsAre(0, 0, 0, 0, 1, 0, 1, 0, 0.5, 0, 0.5, 0));
}

TEST(ImportVectors, OfAnotherLengthAreBadRows) {
  const auto expect = [](const std::string& field, const std::string& reason) {
    const Csv csv(VectorSchema(", missing: [none]"), {"y,text,x\n1,none,0\n1," + field + ",0\n"});
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("in0.csv:3: column 2 (text): "), HasSubstr(reason)),
                [&] { csv.Import(); });
  };
  expect("1|2", "a vector of 2 numbers, but dimension is 3");
  expect("1|2|3|4", "a vector of 4 numbers, but dimension is 3");
  expect("1|2|", "'' is not a number, at position 2 of the vector");
  expect("1|2|3|", "a vector of 4 numbers, but dimension is 3");
  expect("1||3", "'' is not a number, at position 1 of the vector");
  expect("1|2|a", "'a' is not a number, at position 2 of the vector");
  expect("1|none|3", "'none' is not a number, at position 1 of the vector");
  expect("1|2|inf", "'inf' is not a finite number, at position 2 of the vector");

  const Csv list(VectorSchema(", brackets: true, separator: ';'"), {"y,text,x\n1,[1;;3],0\n"});
  ExpectError(ErrorCode::kData, HasSubstr("'' is not a number, at position 1 of the vector"),
              [&] { list.Import(); });
  for (const char* field : {"[1;2;]", "[1;2; ]", "[;1;2]"}) {
    const Csv open(VectorSchema(", brackets: true, separator: ';'"),
                   {std::string("y,text,x\n1,") + field + ",0\n"});
    ExpectError(ErrorCode::kData, HasSubstr("'' is not a number"), [&] { open.Import(); });
  }
  // Unlike several spaces, several tabs do not count as one.
  const Csv tabs(VectorSchema(", separator: \"\\t\""), {"y,text,x\n1,1\t\t2,0\n"});
  ExpectError(ErrorCode::kData, HasSubstr("'' is not a number, at position 1 of the vector"),
              [&] { tabs.Import(); });
  const Csv spaces(VectorSchema(", separator: ' '"), {"y,text,x\n1, 1  2 3 ,0\n"});
  EXPECT_THAT(spaces.Read().dense, ElementsAre(1, 2, 3, 0));

  Csv csv(VectorSchema(""), {"y,text,x\n1,1|2,0\n0,1|2|3,4\n"});
  csv.options.skip_bad_rows = true;
  EXPECT_THAT(csv.Read().dense, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ReadFile(csv.options.output + "/skipped_rows.csv"),
              HasSubstr("a vector of 2 numbers"));
}

TEST(ImportVectors, HaveTheSameDimensionInATestSet) {
  const Csv csv(VectorSchema(""), {"y,text,x\n1,1|2|3,0\n"});
  csv.Import();
  Csv later(
      "columns:\n  y: {role: label}\n  text: {role: dense, dimension: 2}\n  x: {role: dense}\n",
      {"y,text,x\n1,1|2,0\n"});
  later.options.vocabulary.clear();
  later.options.vocabulary_from = csv.options.output;
  ExpectError(ErrorCode::kConfig,
              AllOf(HasSubstr("vector 'text' has dimension 3 in"), HasSubstr("here it has 2")),
              [&] { later.Import(); });
}

TEST(ImportVectors, SchemasThatMakeNoSense) {
  const auto expect = [](const std::string& column, const std::string& problem) {
    const Csv csv("columns: {y: {role: label}, text: {" + column + "}}\n", {"y,text\n1,2\n"});
    ExpectError(ErrorCode::kConfig, HasSubstr(problem), [&] { csv.Import(); });
  };
  expect("role: categorical, dimension: 2", "dimension belongs to role dense");
  expect("role: dense, dimension: -1", "must be between 0 and 65536");
  expect("role: dense, separator: ';'", "separator belongs to role multi_hot, and to role dense");
  expect("role: dense, dimension: 2, transform: buckets",
         "must be none, log, standardize or minmax for the numbers of a vector");
  expect("role: dense, dimension: 2, separator: ','", "is the delimiter");
  const Csv twice(
      "columns: {y: {role: label}, text: {role: dense, dimension: 2}, text.1: {role: dense}}\n",
      {"y,text,text.1\n1,1|2,3\n"});
  ExpectError(ErrorCode::kConfig, HasSubstr("column 'text.1' appears twice"),
              [&] { twice.Import(); });
  for (const char* separator : {"5", "e", "E", "+", "-", "."})
    expect(std::string("role: dense, dimension: 2, separator: '") + separator + "'",
           "can be a part of a number");
  const Csv names(
      "columns: {y: {role: label}, a: {role: dense, dimension: 2}, a.0: {role: dense, dimension: "
      "2}}\n",
      {"y,a,a.0\n1,1|2,3|4\n"});
  ExpectError(ErrorCode::kConfig, HasSubstr("column 'a.0' appears twice"), [&] { names.Import(); });
  const Csv key(
      "columns: {y: {role: label}, text: {role: dense, dimension: 2}, text.1: {role: key}}\n",
      {"y,text,text.1\n1,1|2,3\n"});
  ExpectError(ErrorCode::kConfig,
              HasSubstr("the key 'text.1' has the name of a number of the vector 'text'"),
              [&] { key.Import(); });
  // A vector's own text may be a key.
  const Csv both(
      "columns: {y: {role: label}, text: {role: dense, dimension: 2, key: true}, text.2: {role: "
      "key}}\n",
      {"y,text,text.2\n1,1|2,3\n"});
  EXPECT_THAT(both.Read().dense, ElementsAre(1, 2));
}

TEST(ImportVectors, AManifestWithOtherFeaturesIsCorrupt) {
  const Csv csv(VectorSchema(""), {"y,text,x\n1,1|2|3,0\n"});
  csv.Import();
  testing::RewriteManifest(csv.options.output, "dimension: 3", "dimension: 4");
  ExpectError(ErrorCode::kData, HasSubstr("has 'text' of dimension 4, whose features are not in"),
              [&] { Dataset dataset(csv.options.output); });
}

TEST(ImportVectors, AreInspectedAsOneFeature) {
  const Csv csv(VectorSchema(""), {"y,text,x\n1,1|-2|4,7\n0,,8\n0,1|-2|4,8\n"});
  csv.Import();
  const DatasetSummary summary = InspectDataset(Dataset(csv.options.output), 2);
  ASSERT_EQ(summary.features.size(), 2u);
  const FeatureSummary& text = summary.features[0];
  EXPECT_EQ(text.name, "text");
  EXPECT_EQ(text.kind, "vector");
  EXPECT_EQ(text.dimension, 3);
  EXPECT_EQ(text.values, 3);
  EXPECT_EQ(text.missing, 1);
  EXPECT_EQ(text.distinct, 1);
  EXPECT_EQ(text.min, -2);
  EXPECT_EQ(text.max, 4);
  EXPECT_EQ(text.mean, 6.0 / 9);
  EXPECT_EQ(summary.features[1].name, "x");
  EXPECT_EQ(summary.features[1].max, 8);
}

constexpr char kBuckets[] =
    "columns: {y: {role: label}, age: {role: categorical, buckets: [18, 40.5], missing: "
    "[\"-1\"]}}\n";

TEST(ImportBuckets, MakeCategoriesOfNumbers) {
  Csv csv(kBuckets, {"y,age\n1,17.9\n0,18\n1,40\n0,40.5\n1,1e9\n0,-1\n1,\n1,-2\n1,18\n"});
  csv.options.unseen = {"0"};
  const Batch batch = csv.Read();
  EXPECT_THAT(csv.Values("age"), ElementsAre("[18, 40.5)", "(-inf, 18)", "[40.5, inf)"));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(3, 2, 2, 4, 4, 0, 0, 3, 2));
  EXPECT_EQ(Dataset(csv.options.output).schema().parsing.at("age"),
            "missing '-1', buckets 18 40.5");
}

// Other bounds give the same text another meaning.
TEST(ImportBuckets, AreTheSameInATestSet) {
  const Csv csv(kBuckets, {"y,age\n1,17.9\n"});
  csv.Import();
  Csv later(
      "columns: {y: {role: label}, age: {role: categorical, buckets: [18], missing: [\"-1\"]}}\n",
      {"y,age\n1,17.9\n"});
  later.options.vocabulary.clear();
  later.options.vocabulary_from = csv.options.output;
  ExpectError(
      ErrorCode::kConfig,
      AllOf(HasSubstr("column 'age' was read into"), HasSubstr("brackets, keep and buckets")),
      [&] { later.Import(); });
}

TEST(ImportBuckets, TakeNumbersOnly) {
  const auto expect = [](const std::string& field, const std::string& reason) {
    const Csv csv(kBuckets, {"y,age\n1," + field + "\n"});
    ExpectError(ErrorCode::kData, HasSubstr(reason), [&] { csv.Import(); });
  };
  expect("young", "'young' is not a number, of which 'buckets' makes categories");
  expect("inf", "'inf' is not a finite number");
  expect("nan", "'nan' is not a finite number");
  const auto expect_wrong = [](const std::string& column, const std::string& problem) {
    const Csv csv("columns: {y: {role: label}, age: {" + column + "}}\n", {"y,age\n1,2\n"});
    ExpectError(ErrorCode::kConfig, HasSubstr(problem), [&] { csv.Import(); });
  };
  expect_wrong("role: categorical, buckets: [2, 1]", "each greater than the one before");
  expect_wrong("role: categorical, buckets: [1, 1]", "each greater than the one before");
  expect_wrong("role: categorical, buckets: [1, .inf]", "each greater than the one before");
  expect_wrong("role: categorical, buckets: []", "buckets is empty: give at least one number");
  expect_wrong("role: dense, buckets: [1, 2]",
               "found a list: bounds of buckets belong to role categorical");
  expect_wrong("role: date, date: \"%H\", parts: {hour: {role: categorical, buckets: [12]}}",
               "has 'buckets' of 'hour', which only columns have");
}

}  // namespace
}  // namespace renzan
