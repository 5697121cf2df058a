// How the columns of a file and those of its schema are matched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"
#include "renzan/data/text/csv_field.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Optional;
using testing::ReadAll;

TEST(CsvFieldsOf, ReadsWhatCsvFieldWrites) {
  EXPECT_THAT(CsvFieldsOf("a,b c"), Optional(ElementsAre("a", "b c")));
  EXPECT_THAT(CsvFieldsOf(""), Optional(ElementsAre("")));
  EXPECT_THAT(CsvFieldsOf("a,"), Optional(ElementsAre("a", "")));
  EXPECT_THAT(CsvFieldsOf("a\"b"), Optional(ElementsAre("a\"b")));
  const std::vector<std::string> texts = {"a,b", "", "\"", "\"\",\"", "x\"y", "plain", ",", "\n"};
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : ",") + CsvField(text);
  EXPECT_THAT(CsvFieldsOf(line), Optional(texts));
  for (const char* wrong : {"\"", "\"a", "a,\"b", "\"a\"b", "\"a\"\"", "\"a\" ,b"})
    EXPECT_EQ(CsvFieldsOf(wrong), std::nullopt) << wrong;
}

// Names of files are bounded, those of columns are not.
TEST(ImportCsv, ColumnsMayHaveLongNames) {
  std::string chinese;
  for (int i = 0; i < 27; ++i) chinese += "\u7279";
  const std::string bags(300, 'b'), other_bags = bags + "2", letters(250, 'c'), wide(400, 'w'),
                                    dense(2000, 'd'), label(300, 'y');
  Csv csv(fmt::format("columns:\n  {}: {{role: label}}\n  ? {}\n  : {{role: dense}}\n"
                      "  {}: {{role: multi_hot}}\n  {}: {{role: multi_hot}}\n"
                      "  {}: {{role: categorical}}\n  {}: {{role: categorical}}\n"
                      "  {}: {{role: categorical}}\n",
                      label, dense, bags, other_bags, letters, chinese, wide),
          {fmt::format("{},{},{},{},{},{},{}\n"
                       "1,2.5,a|b,c,x,p,u\n"
                       "0,3.5,b,d|e|f,y,q,v\n",
                       label, dense, bags, other_bags, letters, chinese, wide)});
  csv.options.vocabulary = {"threshold:1", wide + "=hash:3000000000"};
  const Batch batch = csv.Read();
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(3, 2, 2));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(batch.categorical[2].values, ElementsAre(2, 3));
  EXPECT_THAT(batch.categorical[3].values, ElementsAre(2, 3));
  EXPECT_THAT(csv.Values(bags), ElementsAre("b", "a"));
  EXPECT_THAT(csv.Values(other_bags), ElementsAre("c", "d", "e", "f"));
  EXPECT_THAT(csv.Values(letters), ElementsAre("x", "y"));
  EXPECT_THAT(csv.Values(chinese), ElementsAre("p", "q"));
  const DatasetSchema schema = Dataset(csv.options.output).schema();
  EXPECT_EQ(schema.dense[0], dense);
  EXPECT_TRUE(schema.categorical[4].has_wide_ids());
  EXPECT_EQ(schema.categorical[1].name, other_bags);

  ImportOptions test = csv.options;
  test.vocabulary.clear();
  test.vocabulary_from = csv.options.output;
  test.output = csv.dir / "test";
  ImportDataset(test);
  EXPECT_EQ(ReadAll(Dataset(test.output)).categorical[1].values, batch.categorical[1].values);
}

// Files of datasets that were written before names were cut are named like this.
TEST(FeatureFile, NamesThatFitAreNotCut) {
  const std::string fits(243, 'a');
  EXPECT_EQ(FeatureFile(fits, "offsets"), fits + ".offsets.npy");
  EXPECT_EQ(FeatureFile("genres/x", "values"), "genres%2Fx.values.npy");
  const std::string cut = FeatureFile(fits + "a", "offsets");
  EXPECT_EQ(cut.size(), 255u);
  EXPECT_NE(cut, FeatureFile(fits + "b", "offsets"));
}

// Names are suggested that no column has; what a header lacks can be added or removed.
TEST(ImportCsv, SaysWhatToDoAboutColumnsThatDiffer) {
  const std::string schema =
      "columns: {y: {role: label}, user_id: {role: categorical}, item: {role: categorical}}\n";
  ExpectError(ErrorCode::kConfig, HasSubstr("column 2 'item_id' is not in"),
              [&] { Csv(schema, {"user_id,item_id,y\nu,i,1\n"}).Import(); });
  ExpectError(ErrorCode::kConfig, HasSubstr("(did you mean 'item'?)"),
              [&] { Csv(schema, {"user_id,items,y\nu,i,1\n"}).Import(); });
  ExpectError(ErrorCode::kConfig, ::testing::Not(HasSubstr("user_id'?")),
              [&] { Csv(schema, {"user_id,item_id,y\nu,i,1\n"}).Import(); });
  const Csv lacks(schema, {"user_id,y\nu,1\n"});
  ExpectError(ErrorCode::kConfig,
              HasSubstr("the header has no column 'item', which " + lacks.options.schema +
                        " declares: remove it there, or add it to the file, with empty fields"),
              [&] { lacks.Import(); });

  const Csv training(schema, {"user_id,item,y\nu,i,1\nv,i,0\n"});
  training.Import();
  const auto test = [&](const std::string& test_schema, const std::string& text) {
    Csv csv(test_schema, {text});
    csv.options.vocabulary.clear();
    csv.options.vocabulary_from = training.options.output;
    csv.Import();
  };
  ExpectError(
      ErrorCode::kConfig,
      HasSubstr("use the schema of that import, and add the columns that the file lacks"), [&] {
        test("columns: {y: {role: label}, user_id: {role: categorical}}\n", "user_id,y\nu,1\n");
      });
  ExpectError(ErrorCode::kConfig,
              AllOf(HasSubstr("here it is read as missing 'NA', so that the same text could mean "
                              "something else here, whether or not it occurs there"),
                    HasSubstr("or import " + training.options.output + " again with this schema")),
              [&] { test("missing: [NA]\n" + schema, "user_id,item,y\nu,NA,1\n"); });
}

TEST(ImportCsv, PatternsOfColumns) {
  const std::string schema =
      "columns:\n  \"C*\": {role: categorical}\n  y: {role: label}\n  C3: {role: skip}\n"
      "  \"*_n\": {role: dense}\n  \"*\": {role: skip}\n";
  const Csv csv(schema, {"id,C10,C2,y,C3,a_n,Cb_n,b_n\n7,x,u,1,q,1,v,2\n",
                         // The order of another file's columns does not matter.
                         "y,b_n,a_n,Cb_n,C3,C2,C10,id\n0,4,3,v,q,u,x,8\n"});
  const Batch batch = csv.Read();
  const DatasetSchema schema_read = Dataset(csv.options.output).schema();
  EXPECT_THAT(schema_read.dense, ElementsAre("a_n", "b_n"));
  EXPECT_THAT(batch.dense, ElementsAre(1, 2, 3, 4));
  ASSERT_EQ(schema_read.categorical.size(), 3U);
  EXPECT_EQ(schema_read.categorical[0].name, "C2");  // as a person counts
  EXPECT_EQ(schema_read.categorical[1].name, "C10");
  EXPECT_EQ(schema_read.categorical[2].name, "Cb_n");  // the first pattern counts
  EXPECT_THAT(csv.Values("C2"), ElementsAre("u"));

  // A test set whose first file has another order has the same features.
  Csv test(schema, {"y,b_n,a_n,Cb_n,C3,C2,C10,id\n0,4,3,v,q,u,x,8\n"});
  test.options.vocabulary.clear();
  test.options.vocabulary_from = csv.options.output;
  EXPECT_EQ(test.Import().rows, 1);

  ExpectError(ErrorCode::kConfig, HasSubstr("no column matches 'D*'"), [] {
    Csv("columns: {y: {role: label}, \"D*\": {role: dense}}\n", {"y,x\n"}).Import();
  });
  ExpectError(ErrorCode::kConfig, HasSubstr("has the pattern 'D*', but without a header"), [] {
    Csv("header: false\ncolumns: {y: {role: label}, \"D*\": {role: dense}}\n", {"1,2\n"}).Import();
  });
  ExpectError(ErrorCode::kConfig, HasSubstr("with role label: name that column"),
              [] { Csv("columns: {\"y*\": {role: label}}\n", {"y\n"}).Import(); });
  // Columns of a later file.
  ExpectError(ErrorCode::kConfig, HasSubstr("in1.csv:1: column 2 'C2' is not in"), [] {
    Csv("columns: {y: {role: label}, \"C*\": {role: dense}}\n", {"y,C1\n1,2\n", "y,C2\n1,2\n"})
        .Import();
  });
  ExpectError(ErrorCode::kData, HasSubstr("no rows in "), [&] { Csv(schema, {""}).Import(); });
}

TEST(ImportCsv, AColumnWithoutAName) {
  const std::string schema = "columns: {y: {role: label}, x: {role: dense}}\n";
  const Csv csv(schema, {",y,x\n0,1,5\n1,0,6\n", "y,x\n1,7\n"});
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(csv.Read().dense, ElementsAre(5, 6, 7));
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("in0.csv: column 1 has no name, as pandas writes its index, and is skipped"));
  // If the schema lists it, nothing has to be said.
  Csv listed("columns: {\"\": {role: skip}, y: {role: label}, x: {role: dense}}\n",
             {",y,x\n0,1,5\n", "y,x\n0,7\n"});
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(listed.Read().dense, ElementsAre(5, 7));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ExpectError(ErrorCode::kConfig, HasSubstr("in0.csv:1: column 3 has no name"),
              [&] { Csv(schema, {"y,x,\n1,2,\n"}).Import(); });
}

TEST(ImportCsv, FlagsTakeNamesWithCommas) {
  Csv csv("columns: {y: {role: label}, 'a,b=c': {role: categorical}, d: {role: categorical}}\n",
          {"y,\"a,b=c\",d\n1,p,q\n0,r,s\n"});
  csv.options.vocabulary = {"threshold:1", "a,b=c=hash:7"};
  csv.options.unseen = {"d=0"};
  csv.Import();
  const DatasetSchema schema = Dataset(csv.options.output).schema();
  EXPECT_EQ(schema.categorical[0].name, "a,b=c");
  EXPECT_EQ(schema.categorical[0].num_embeddings, 7);
  EXPECT_EQ(schema.categorical[1].num_embeddings, 4);
}

TEST(ImportCsv, HeaderAndSchemaMustAgree) {
  const std::string schema = "columns: {y: {role: label}, price: {role: dense}}\n";
  ExpectError(ErrorCode::kConfig,
              AllOf(HasSubstr("in0.csv:1: column 2 'prise' is not in"), HasSubstr("'price'?"),
                    HasSubstr("role skip")),
              [&] { Csv(schema, {"y,prise\n1,2\n"}).Import(); });
  ExpectError(ErrorCode::kConfig, HasSubstr("has no column 'price'"),
              [&] { Csv(schema, {"y\n1\n"}).Import(); });
  ExpectError(ErrorCode::kData, HasSubstr("column 'y' appears twice"),
              [&] { Csv(schema, {"y,y\n1,2\n"}).Import(); });
}

}  // namespace
}  // namespace renzan
