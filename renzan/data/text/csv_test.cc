#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"
#include "renzan/data/text/csv_testing.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::ReadAll;

constexpr char kCsvSchema[] = R"(
missing: ["?"]
columns:
  income: {role: label, positive: ">50K", negative: "<=50K"}
  age: {role: dense}
  gain: {role: dense, transform: log}
  job: {role: categorical}
  genres: {role: multi_hot, separator: "|"}
  note: {role: skip}
)";

TEST(ImportCsv, RolesTransformsAndMissingValues) {
  const Csv csv(kCsvSchema, {"income,age,gain,job,genres,note\n"
                             ">50K,38.5,99,clerk,Drama|Crime|Drama,x\n"
                             "<=50K,?,-4,?,,\n"
                             "<=50K,-1e3,,cook,?,nothing\n",
                             // Another file with a different column order.
                             "job,genres,note,age,gain,income\r\n"
                             "cook,|Crime|,x,+7,0,>50K\r\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(batch.label, ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(batch.dense, ElementsAre(38.5, std::log(100.0f), 0, 0, -1000, 0, 7, 0));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(3, 0, 2, 2));
  EXPECT_THAT(csv.Values("job"), ElementsAre("cook", "clerk"));
  EXPECT_THAT(batch.categorical[1].offsets, ElementsAre(0, 3, 3, 3, 4));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(csv.Values("genres"), ElementsAre("Drama", "Crime"));
}

constexpr char kBags[] = "columns: {{y: {{role: label}}, b: {{role: multi_hot{}}}}}\n";

TEST(ImportCsv, TrimAndMissingHoldWithinBags) {
  const Csv csv("trim: true\nmissing: [\"?\"]\n" + fmt::format(kBags, ""),
                {"y,b\n1, a | b\n0,a|?\t|b\n1,\" a| \"\n0,?|?\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(csv.Values("b"), ElementsAre("a", "b"));
  EXPECT_THAT(batch.categorical[0].offsets, ElementsAre(0, 2, 4, 5, 5));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 2, 3, 2));
  // Blanks are part of a value unless it is trimmed.
  const Csv plain(fmt::format(kBags, ""), {"y,b\n1,a | b\n"});
  plain.Import();
  EXPECT_THAT(plain.Values("b"), ElementsAre("a ", " b"));
}

TEST(ImportCsv, BagsInBrackets) {
  const Csv csv("missing: [nan]\n" + fmt::format(kBags, ", brackets: true"),
                {"y,b\n1,\"[1, 2]\"\n0,[1]\n1,[]\n0,\n"
                 "1,\"['it, is', \"\"1\"\" ,nan,]\"\n0,\" [ ] \"\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(csv.Values("b"), ElementsAre("1", "2", "it, is"));
  EXPECT_THAT(batch.categorical[0].offsets, ElementsAre(0, 2, 3, 3, 3, 5, 5));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 2, 4, 2));

  // NumPy separates by blanks and line breaks.
  const Csv numpy(fmt::format(kBags, ", brackets: true, separator: \" \""),
                  {"y,b\n1,[1  2]\n0,\"[ 2\n 1 ]\"\n"});
  EXPECT_THAT(numpy.Read().categorical[0].values, ElementsAre(2, 3, 3, 2));

  const struct {
    const char *field, *problem;
  } kCases[] = {
      {"1|2", "'1|2' is not a list in brackets"},
      {"[1", "is not a list in brackets"},
      {"\"[1, [2]]\"", "is not a list of plain values"},
      {"['a]", "has a quote that is never closed"},
      {"['a' b]", "has text after a closing quote"},
      {"['a\\nb']", "has a backslash in quotes"},
  };
  for (const auto& test : kCases)
    ExpectError(ErrorCode::kData, AllOf(HasSubstr("column 2 (b)"), HasSubstr(test.problem)), [&] {
      Csv(fmt::format(kBags, ", brackets: true"), {fmt::format("y,b\n1,{}\n", test.field)})
          .Import();
    });
  // Without quotes a list would be several fields.
  ExpectError(ErrorCode::kConfig, HasSubstr("columns.b.separator is the delimiter"), [] {
    Csv("quotes: false\n" + fmt::format(kBags, ", brackets: true"), {"y,b\n"}).Import();
  });
}

TEST(ImportCsv, RecordsHowTextWasRead) {
  const std::string columns =
      "columns: {y: {role: label}, x: {role: dense}, s: {role: skip}, "
      "b: {role: multi_hot}, c: {role: multi_hot, separator: ';'}}\n";
  const std::string text = "y,x,s,b,c\n1,?,s,a,b\n";
  const Csv plain(columns, {"y,x,s,b,c\n1,0,s,a,b\n"});
  plain.Import();
  const Dataset as_is(plain.options.output);
  EXPECT_THAT(as_is.schema().parsing, ElementsAre(Pair("b", "plain"), Pair("c", "separator ';'"),
                                                  Pair("x", "plain"), Pair("y", "plain")));
  const Csv csv("trim: true\nmissing: [\"?\", NA, \"\"]\n" + columns, {text});
  csv.Import();
  const Dataset dataset(csv.options.output);
  EXPECT_EQ(dataset.schema().parsing.at("x"), "trim, missing '?', missing 'NA'");
  EXPECT_EQ(dataset.schema().parsing.at("c"), "trim, missing '?', missing 'NA', separator ';'");

  // A test set that is read in another way is refused, and the order of `missing` says nothing.
  Csv test("trim: true\nmissing: [NA, \"?\"]\n" + columns, {text});
  test.options.vocabulary.clear();
  test.options.vocabulary_from = csv.options.output;
  test.Import();
  Csv other("missing: [NA, \"?\"]\n" + columns, {text});
  other.options.vocabulary.clear();
  other.options.vocabulary_from = csv.options.output;
  ExpectError(ErrorCode::kConfig,
              AllOf(HasSubstr("column 'b' was read into"),
                    HasSubstr("trim, missing '?', missing 'NA', here it is read as missing '?'")),
              [&] { other.Import(); });
  // A dataset from before this was recorded can still be used.
  const std::string fingerprint = dataset.fingerprint();
  const std::string manifest = ReadFile(csv.options.output + "/dataset.yaml");
  const size_t begin = manifest.find("parsing: ");
  testing::RewriteManifest(csv.options.output,
                           manifest.substr(begin, manifest.find('\n', begin) + 1 - begin), "");
  EXPECT_NE(Dataset(csv.options.output).fingerprint(), fingerprint);
  ::testing::internal::CaptureStderr();
  other.Import();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("cannot check that columns are read"));
}

// Data imported before parsing was recorded has the fingerprint that it had, if it was read
// plainly.
TEST(ImportCsv, PlainParsingKeepsTheFingerprint) {
  const Csv csv("columns: {y: {role: label}, b: {role: multi_hot}}\n", {"y,b\n1,a\n"});
  csv.Import();
  const std::string fingerprint = Dataset(csv.options.output).fingerprint();
  testing::RewriteManifest(csv.options.output, "parsing: {b: plain, \"y\": plain}\n", "");
  EXPECT_TRUE(Dataset(csv.options.output).schema().parsing.empty());
  EXPECT_EQ(Dataset(csv.options.output).fingerprint(), fingerprint);
}

TEST(ImportCsv, DelimitersOfSeveralCharacters) {
  // As in MovieLens' ratings.dat.
  const std::string schema =
      "delimiter: \"::\"\nheader: false\ntrim: true\ncolumns:\n  user: {role: categorical}\n"
      "  movie: {role: categorical}\n  rating: {role: label, at_least: 4}\n  time: {role: dense}\n";
  const Csv csv(schema, {"1::11:93::5::978300760\n2:: \"a::b\" ::3::1\n::::4::\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(batch.label, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.dense, ElementsAre(978300760.0f, 1, 0));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 0));
  EXPECT_THAT(csv.Values("movie"), ElementsAre("11:93", "a::b"));
  ExpectError(ErrorCode::kData, HasSubstr("text follows the closing quote of field 2"),
              [&] { Csv(schema, {"1::\"a\":3::4::5\n"}).Import(); });
  ExpectError(ErrorCode::kConfig, HasSubstr("delimiter must be one character, several that"),
              [] { Csv("delimiter: comma\ncolumns: {y: {role: label}}\n", {"y\n"}).Import(); });
}

TEST(ImportCsv, MissingOfOneColumn) {
  const Csv csv(
      "missing: [NA]\ncolumns: {y: {role: label}, land: {role: categorical, missing: []}, "
      "x: {role: dense, missing: [\"-1\"]}, z: {role: dense}}\n",
      {"y,land,x,z\n1,NA,-1,NA\n0,DE,3,-1\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(csv.Values("land"), ElementsAre("NA", "DE"));
  EXPECT_THAT(batch.dense, ElementsAre(0, 0, 3, -1));
  const auto parsing = Dataset(csv.options.output).schema().parsing;
  EXPECT_EQ(parsing.at("land"), "plain");
  EXPECT_EQ(parsing.at("x"), "missing '-1'");
  EXPECT_EQ(parsing.at("z"), "missing 'NA'");
  // A column's own texts replace the file's.
  ExpectError(ErrorCode::kData, HasSubstr("column 3 (x): 'NA' is not a number"), [&] {
    Csv other(ReadFile(csv.options.schema), {"y,land,x,z\n1,NA,NA,NA\n"});
    other.Import();
  });
}

TEST(ImportCsv, WithoutHeaderAndWithTabs) {
  const Csv csv(
      "header: false\ndelimiter: \"\\t\"\ntrim: true\ncolumns:\n"
      "  z: {role: dense}\n  rating: {role: label, at_least: 4}\n  a: {role: dense}\n",
      {"1\t 3.5\t 2 \n\n3\t4\t4"});
  const Batch batch = csv.Read();
  EXPECT_THAT(batch.label, ElementsAre(0, 1));
  EXPECT_THAT(batch.dense, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Dataset(csv.options.output).schema().dense, ElementsAre("z", "a"));
  EXPECT_EQ(Dataset(csv.options.output).schema().label_rule, "at_least 4");
}

// The schema is what is wrong if no row can be read.
TEST(ImportCsv, ARoleThatFitsNoRowIsNamedInTheMessage) {
  const struct {
    const char *column, *field, *advice;
  } kCases[] = {
      {"role: dense", "books", "; if the column holds no numbers, give it another role in the "},
      {"role: weight", "books", "; if the column weighs no samples, give it another role in the "},
      {"role: multi_hot, brackets: true", "a|b", "; if the column's lists are written otherwise, "},
      {"role: label, values: no/yes", "0", "; if the labels are written otherwise, correct the "},
      {"role: label, at_least: 3", "good", "; if the labels are written otherwise, correct the "},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.column);
    const bool is_label = std::string(test.column).find("label") != std::string::npos;
    const std::string schema = fmt::format("columns: {{{}: {{{}}}, {}: {{role: {}}}}}\n", "x",
                                           test.column, "z", is_label ? "dense" : "label");
    const std::string bad = fmt::format("{},1\n", test.field);
    Csv csv(schema, {"x,z\n" + bad + bad});
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("in0.csv:2: column 1 (x): "), HasSubstr(test.advice)),
                [&] { csv.Import(); });
    csv.options.skip_bad_rows = true;
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("no valid rows in "), HasSubstr("(2 bad rows; the first: "),
                      HasSubstr(test.advice)),
                [&] { csv.Import(); });
  }
  ExpectError(
      ErrorCode::kData,
      AllOf(HasSubstr("in0.csv:3: column 2 (x): 'a' is not a number; fix the row"),
            ::testing::Not(HasSubstr("role"))),
      [] { Csv("columns: {y: {role: label}, x: {role: dense}}\n", {"y,x\n1,2\n0,a\n"}).Import(); });
}

TEST(ImportCsv, BadRows) {
  const std::string schema =
      "columns:\n  y: {role: label, positive: \"yes\", negative: \"no\"}\n"
      "  x: {role: dense}\n  l: {role: dense, transform: log}\n";
  const struct {
    const char *row, *message;
  } kCases[] = {
      {"yes,1", "in0.csv:2: 2 fields instead of 3"},
      {"maybe,1,1", "in0.csv:2: column 1 (y): 'maybe' is neither 'yes' nor 'no'"},
      {",1,1", "in0.csv:2: column 1 (y): '' is not a label"},
      {"no,abc,1", "in0.csv:2: column 2 (x): 'abc' is not a number"},
      {"no,1x,1", "in0.csv:2: column 2 (x): '1x' is not a number"},
      {"no,nan,1", "in0.csv:2: column 2 (x): 'nan' is not a finite number"},
      {"no,-inf,1", "in0.csv:2: column 2 (x): '-inf' is not a finite number"},
      {"no,1e39,1", "in0.csv:2: column 2 (x): '1e39' is not a finite number"},
      {"no,1,nan", "in0.csv:2: column 3 (l): 'nan' is not a finite number"},
      {"no,1,-inf", "in0.csv:2: column 3 (l): '-inf' is not a finite number"},
  };
  for (const auto& test : kCases) {
    Csv csv(schema, {fmt::format("y,x,l\n{}\nyes,1,1\n", test.row)});
    ExpectError(ErrorCode::kData, HasSubstr(test.message), [&] { csv.Import(); });
    csv.options.skip_bad_rows = true;
    const ImportProgress done = csv.Import();
    EXPECT_EQ(done.rows, 1);
    EXPECT_EQ(done.bad_rows, 1);
  }
  ExpectError(ErrorCode::kData, HasSubstr("'7' is not 0 or 1; 'values', 'positive',"),
              [] { Csv("columns: {y: {role: label}}\n", {"y\n7\n"}).Import(); });
}

TEST(ImportCsv, AColumnMaySetItsShareOfUnseenValues) {
  const std::string schema =
      "columns: {y: {role: label}, a: {role: categorical, unseen: 0.5}, b: {role: categorical}, "
      "m: {role: multi_hot, unseen: 0.5}}\n";
  std::string text = "y,a,b,m\n";
  for (int row = 0; row < 1000; ++row) text += "1,v,v,v|w\n0,w,v,v\n";
  Csv csv(schema, {text});
  csv.options.unseen = {"0"};
  const Batch batch = csv.Read();
  const auto unseen = [&](size_t f) {
    const std::vector<int64_t>& ids = batch.categorical[f].values;
    return static_cast<double>(std::count(ids.begin(), ids.end(), Vocabulary::kRare)) /
           static_cast<double>(ids.size());
  };
  EXPECT_NEAR(unseen(0), 0.5, 0.05);
  EXPECT_EQ(unseen(1), 0);
  // The values of a bag are chosen one by one.
  EXPECT_NEAR(unseen(2), 0.5, 0.05);
  int differ = 0;
  const FeatureIds& bags = batch.categorical[2];
  for (size_t row = 0; row < 2000; row += 2) {
    const auto first = static_cast<size_t>(bags.offsets[row]);
    differ +=
        (bags.values[first] == Vocabulary::kRare) != (bags.values[first + 1] == Vocabulary::kRare);
  }
  EXPECT_NEAR(differ, 500, 60);

  // A test set has the same schema.
  ImportOptions test = csv.options;
  test.vocabulary.clear();
  test.unseen.clear();
  test.vocabulary_from = csv.options.output;
  test.output = csv.dir / "test";
  ImportDataset(test);
  const std::vector<int64_t> ids = ReadAll(Dataset(test.output)).categorical[0].values;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), Vocabulary::kRare), 0);

  csv.options.unseen = {"a=0.1"};
  csv.options.output = csv.dir / "twice";
  ExpectError(ErrorCode::kUsage, HasSubstr("the schema has 'unseen' for this column too"),
              [&] { csv.Import(); });
  ExpectError(ErrorCode::kConfig, HasSubstr("unseen must be a share"), [] {
    Csv("columns: {y: {role: label}, a: {role: categorical, unseen: 1}}\n", {"y,a\n"}).Import();
  });
  ExpectError(ErrorCode::kConfig, HasSubstr("belongs to roles categorical and multi_hot"), [] {
    Csv("columns: {y: {role: label}, a: {role: dense, unseen: 0.1}}\n", {"y,a\n"}).Import();
  });
}

TEST(ImportCsv, WrongSchemas) {
  const struct {
    const char *schema, *message;
  } kCases[] = {
      {"colums: {}\n",
       "schema.yaml:1:1: unknown key 'colums' at the top level: did you mean "
       "'columns'?"},
      {"columns:\n  y: {rol: label}\n", "schema.yaml:2:7: unknown key 'rol'"},
      {"columns:\n  y: {role: lable}\n", "schema.yaml:2:13: role cannot be 'lable'"},
      {"columns:\n  y: {role: dense}\n",
       "schema.yaml: no column has the role label; data without "
       "labels, for `renzan predict`, needs --vocabulary-from"},
      {"columns: {y: {role: label, optional: true}}\n",
       "'y' with optional: true, but it is the only label"},
      {"columns: {y: {role: label, transform: log}}\n", "transform belongs to role dense"},
      {"columns: {y: {role: label}, x: {role: dense, at_least: 2}}\n", "belongs to role label"},
      {"columns: {y: {role: label, positive: a, negative: b, at_least: 2}}\n",
       "columns.y.positive cannot be combined with another rule"},
      {"columns: {y: {role: label, positive_above: 1, at_least: 2}}\n",
       "columns.y.at_least cannot be combined"},
      {"columns: {y: {role: label, values: -1/1, at_least: 2}}\n",
       "columns.y.values cannot be combined"},
      {"columns: {y: {role: label, values: yes/no}}\n", "values must be one of 0/1, -1/1, no/yes"},
      {"columns: {y: {role: label, positive: a}}\n", "columns.y.positive needs 'negative' too"},
      {"columns: {y: {role: label, negative: a}}\n", "columns.y.negative needs 'positive' too"},
      {"columns: {y: {role: label, positive: a, negative: a}}\n", "is the same as 'positive'"},
      {"columns: {y: {role: label}, x: {role: dense, negative: a}}\n", "belongs to role label"},
      {"columns: {y: {role: label}, x: {}}\n", "columns.x.role is missing"},
      {"columns: {y: {role: label}, x: {role: multi_hot, separator: \", \"}}\n",
       "must be one character"},
      {"columns: {y: {role: label}, x: {role: multi_hot, separator: \",\"}}\n",
       "schema.yaml:1:61: columns.x.separator is the delimiter: write another character"},
      {"delimiter: \"a|\"\ncolumns: {y: {role: label}}\n", "schema.yaml:1:12: delimiter must be"},
  };
  for (const auto& test : kCases)
    ExpectError(ErrorCode::kConfig, HasSubstr(test.message),
                [&] { Csv(test.schema, {"y\n1\n"}).Import(); });
}

TEST(ImportCsv, RealAdult) {
  SKIP_WITHOUT_SHARED_DATA("adult/train.csv.gz");
  const std::string schema = R"(
header: false
missing: ["?"]
columns:
  age: {role: dense}
  workclass: {role: categorical}
  fnlwgt: {role: skip}
  education: {role: categorical}
  education-num: {role: dense}
  marital-status: {role: categorical}
  occupation: {role: categorical}
  relationship: {role: categorical}
  race: {role: categorical}
  sex: {role: categorical}
  capital-gain: {role: dense, transform: log}
  capital-loss: {role: dense, transform: log}
  hours-per-week: {role: dense}
  native-country: {role: categorical}
  income: {role: label, positive: ">50K", negative: "<=50K"}
)";
  Csv csv(schema, {});
  csv.options.inputs = {testing::SharedData("adult/train.csv.gz")};
  const Batch batch = csv.Read();
  EXPECT_EQ(batch.size, 32561);
  EXPECT_EQ(std::count(batch.label.begin(), batch.label.end(), 1.0f), 7841);
  EXPECT_THAT(csv.Values("sex"), ElementsAre("Male", "Female"));

  ImportOptions test = csv.options;
  test.inputs = {testing::SharedData("adult/test.csv.gz")};
  test.output = csv.dir / "test";
  test.vocabulary.clear();
  test.vocabulary_from = csv.options.output;
  EXPECT_EQ(ImportDataset(test).rows, 16281);
  EXPECT_EQ(Dataset(test.output).schema().categorical[7].num_embeddings,
            Dataset(csv.options.output).schema().categorical[7].num_embeddings);
}

TEST(ImportCsv, RealInstEval) {
  SKIP_WITHOUT_SHARED_DATA("insteval/InstEval.tsv.gz");
  std::string schema = "delimiter: tab\ncolumns:\n  y: {role: label, at_least: 4}\n";
  for (const char* name : {"s", "d", "studage", "lectage", "service", "dept"})
    schema += fmt::format("  {}: {{role: categorical}}\n", name);
  Csv csv(schema, {});
  csv.options.inputs = {testing::SharedData("insteval/InstEval.tsv.gz")};
  const Batch batch = csv.Read();
  EXPECT_EQ(batch.size, 73421);
  EXPECT_EQ(std::count(batch.label.begin(), batch.label.end(), 1.0f), 16921 + 15754);
  EXPECT_EQ(csv.Values("s").size(), 2972u);
  EXPECT_EQ(csv.Values("d").size(), 1128u);
}

}  // namespace
}  // namespace renzan
