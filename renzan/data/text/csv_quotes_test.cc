#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using testing::Csv;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadAll;

TEST(ImportCsv, QuotesAsInRfc4180) {
  const std::string schema =
      "columns: {y: {role: label}, a: {role: categorical}, "
      "b: {role: categorical}}\n";
  const Csv csv(schema, {"y,\"a\",b\n"
                         "1,\"x, y\",\"say \"\"hi\"\"\"\n"
                         "\"0\",\"two\nlines\",5\" pipe\n"
                         "1,\"\",\"\n\n\"\n"});
  const Batch batch = csv.Read();
  EXPECT_THAT(batch.label, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 0));
  EXPECT_THAT(csv.Values("a"), ElementsAre("x, y", "two\nlines"));
  EXPECT_THAT(csv.Values("b"), ElementsAre("say \"hi\"", "5\" pipe", "\n\n"));

  const Csv plain("quotes: false\n" + schema, {"y,a,b\n1,\"x,y\"\n"});
  plain.Import();
  EXPECT_THAT(plain.Values("a"), ElementsAre("\"x"));

  // Reports the line where the record begins.
  ExpectError(ErrorCode::kData,
              HasSubstr("in0.csv:2: the quote that opens field 2 is never closed"),
              [&] { Csv(schema, {"y,a,b\n1,\"x,y\n1,b,c\n"}).Import(); });
  ExpectError(ErrorCode::kData, HasSubstr("in0.csv:4: text follows the closing quote of field 2"),
              [&] { Csv(schema, {"y,a,b\n1,\"x\n\",y\n1,\"b\"c,d\n"}).Import(); });
}

// Whatever blanks are before or after the quotes, a quoted field is the same field.
TEST(ImportCsv, TrimDropsTheSameBlanksAroundQuotesAsAroundPlainFields) {
  const std::string columns =
      "trim: true\ncolumns: {y: {role: label}, a: {role: categorical}, b: {role: categorical}}\n";
  const Csv commas(columns, {"y,\t\"a\" ,b\n"
                             "1,\"v\",w\n"
                             "0,\t\"v\",\tw\n"
                             "0, \t\"v\"\t ,w\t\n"
                             "1,v\t,\t\"w\"\t\n"
                             "1,\t\"x,y\",\" w\"\n"});
  const Batch batch = commas.Read();
  EXPECT_THAT(commas.Values("a"), ElementsAre("v", "x,y"));
  EXPECT_THAT(commas.Values("b"), ElementsAre("w", " w"));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 2, 2, 2, 3));

  // A blank that is the delimiter is never dropped: the fields between two are empty.
  const Csv tabs("delimiter: tab\n" + columns, {"y\ta\tb\n1\t\t \"w\"\n0\t\"v\"\t\n"});
  EXPECT_THAT(tabs.Read().categorical[0].values, ElementsAre(0, 2));
  EXPECT_THAT(tabs.Values("b"), ElementsAre("w"));
  const Csv spaces("delimiter: \" \"\n" + columns, {"y a b\n1  \"w\"\n0 \t\"v\" \n"});
  EXPECT_THAT(spaces.Read().categorical[0].values, ElementsAre(0, 2));
  EXPECT_THAT(spaces.Values("b"), ElementsAre("w"));
}

constexpr char kThreeColumns[] =
    "columns: {y: {role: label}, a: {role: categorical}, b: {role: dense}}\n";

// Rows "0,"t0",0", "1,"t1",1" ... except those that `change` alters.
std::string QuotedRows(int rows, const std::map<int, std::string>& change) {
  std::string text = "y,a,b\n";
  for (int row = 0; row < rows; ++row) {
    const auto changed = change.find(row);
    text += changed != change.end() ? changed->second
                                    : fmt::format("{},\"t{}\",{}\n", row % 2, row, row);
  }
  return text;
}

// Imports 1000 rows and expects all but those in `lost`.
void ExpectLost(const std::map<int, std::string>& change, const std::vector<int>& lost) {
  Csv csv(kThreeColumns, {QuotedRows(1000, change), "y,a,b\n1,second,file\n1,\"2nd\",7\n"});
  csv.options.skip_bad_rows = true;
  csv.Import();
  const Batch batch = ReadAll(Dataset(csv.options.output));
  std::vector<float> expected;
  for (int row = 0; row < 1000; ++row)
    if (std::find(lost.begin(), lost.end(), row) == lost.end())
      expected.push_back(static_cast<float>(row));
  expected.push_back(7);
  EXPECT_EQ(batch.dense, expected);
}

TEST(ImportCsv, AStrayQuoteLosesOnlyItsRow) {
  ExpectLost({{500, "1,\"never closed,5\n"}}, {500});
  ExpectLost({{500, "1,t,\"5\n"}}, {500});
  ExpectLost({{500, "\"1,t,5\n"}, {501, "1,plain,501\n"}}, {500});
  ExpectLost({{998, "1,\"t,5\n"}, {999, "1,plain,999\n"}}, {998});
  ExpectLost({{3, "\"\n"}, {4, "\"\"\"\n"}, {700, "0,\"a\" ,1\n"}}, {3, 4, 700});
  // A quote of a later row closes it where a field could end: too few fields in total.
  ExpectLost({{500, "1,t,\"\n"}, {501, "0,t,\"\n"}}, {500, 501});
  // More lines without another quote than are searched.
  std::map<int, std::string> plain;
  for (int row = 0; row < 1000; ++row)
    plain[row] = fmt::format("1,{},{}\n", std::string(3000, 'x'), row);
  plain[10] = "1,\"x,10\n";
  ExpectLost(plain, {10});
}

TEST(ImportCsv, TwoStrayQuotesThatMakeAnInvalidValueLoseOnlyTheirRows) {
  std::map<int, std::string> plain;
  for (int row = 0; row < 1000; ++row) plain[row] = fmt::format("1,x,{}\n", row);
  std::map<int, std::string> dense = plain, label = plain;
  dense[3] = "1,x,\"3\n";
  dense[900] = "1,x,900\"\n";
  ExpectLost(dense, {3, 900});
  label[0] = "\"1,x,0\n";
  label[999] = "1\",x,999\n";
  ExpectLost(label, {0, 999});
}

// A record whose quotes are right is one row, as for every other reader of CSV, whatever else is
// wrong with it.
TEST(ImportCsv, ABadRowWithALineBreakInQuotesCountsOnce) {
  const auto bad_rows = [](const std::string& text) {
    Csv csv(kThreeColumns, {"y,a,b\n1,\"one\ntwo\",1\n" + text + "0,\"one\n\ntwo\",2\n"});
    csv.options.skip_bad_rows = true;
    const ImportProgress done = csv.Import();
    EXPECT_EQ(done.rows, 2);
    return done.bad_rows;
  };
  EXPECT_EQ(bad_rows("?,\"one\ntwo\",3\n"), 1);
  EXPECT_EQ(bad_rows("?,\"one\n\n\"\"two\"\"\nthree\",3\n"), 1);
  EXPECT_EQ(bad_rows("0,\"one\ntwo\",x\n0,\"one\ntwo\",3,4\n0,\"one\ntwo\"\n"), 3);
  EXPECT_EQ(bad_rows("0,\"one\n\"\"two\",x\n"), 1);
  EXPECT_EQ(bad_rows("0,x,\"one\ntwo\"\n"), 1);
}

// Two stray quotes that make a valid row look like line breaks in a text.
TEST(ImportCsv, WarnsOfRowsThatSpanSeveralLines) {
  const std::string one_line = "y,a,b\n0,\"c\",1\n", stray = "1,\"x,2\n0,d,3\n0,e\",4\n";
  const auto import = [](const std::string& text, int64_t rows, int64_t multi_line_rows) {
    Csv csv(kThreeColumns, {text});
    csv.options.skip_bad_rows = true;
    ::testing::internal::CaptureStderr();
    const ImportProgress done = csv.Import();
    EXPECT_EQ(done.rows, rows);
    EXPECT_EQ(done.multi_line_rows, multi_line_rows);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(import(one_line + stray, 2, 1), HasSubstr("in0.csv:3: as intended if"));
  EXPECT_THAT(import(one_line + stray + "0,c,1\n1,\"two\nlines\",5\n", 4, 2),
              AllOf(HasSubstr("2 rows span 5 lines, the first at "), HasSubstr("in0.csv:3: ")));
  EXPECT_THAT(import(one_line, 1, 0), Not(HasSubstr("span")));
  // Bad rows are not counted.
  EXPECT_THAT(import(one_line + "what,\"two\nlines\",5\n", 1, 0), Not(HasSubstr("span")));
}

TEST(ImportCsv, SaysWhereAQuoteIsNotClosed) {
  const auto import = [](const std::string& text) {
    return [text] { Csv(kThreeColumns, {"y,a,b\n0,c,1\n" + text}).Import(); };
  };
  ExpectError(ErrorCode::kData,
              HasSubstr("in0.csv:3: the quote that opens field 2 is never closed;"),
              import("1,\"x,2\n1,y,3\n"));
  std::string far = "1,\"x,2\n";
  for (int i = 0; i < 100'000; ++i) far += "1,plain text,3\n";
  ExpectError(ErrorCode::kData,
              HasSubstr("in0.csv:3: the quote that opens field 2 is never closed within 1 MiB"),
              import(far));
  // Where the quote opens, and what may be meant, for quotes that open or close where they should
  // not.
  const auto advice = [](const Csv& csv) {
    return "; if quotes enclose nothing in this file, set quotes: false in " + csv.options.schema +
           "; otherwise fix the row, or skip bad rows";
  };
  const Csv open(kThreeColumns, {"y,a,b\n1,\"two\nlines\",\"x\n1,y,3\n"});
  ExpectError(
      ErrorCode::kData,
      HasSubstr("in0.csv:2: the quote that opens field 3 in line 3 is never closed" + advice(open)),
      [&] { open.Import(); });
  const Csv closed(kThreeColumns, {"y,a,b\n1,\"two\nlines\",\"x\"y\n"});
  ExpectError(
      ErrorCode::kData,
      HasSubstr("in0.csv:2: text follows the closing quote of field 3 in line 3" + advice(closed)),
      [&] { closed.Import(); });
  const Csv header(kThreeColumns, {"y,\"a,b\n"});
  ExpectError(ErrorCode::kData,
              HasSubstr("in0.csv:1: bad header: the quote that opens field 2 is never closed; if "
                        "quotes enclose nothing in this file, set quotes: false in "),
              [&] { header.Import(); });
  // A later bad line is reported with its own number.
  Csv csv(kThreeColumns, {"y,a,b\n1,\"x,2\n1,y,3\nwhat,y,3\n1,\"z\nz\",9\n"});
  csv.options.skip_bad_rows = true;
  ::testing::internal::CaptureStderr();
  const ImportProgress done = csv.Import();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(done.rows, 2);
  EXPECT_EQ(done.bad_rows, 2);
  EXPECT_THAT(log, HasSubstr("in0.csv:2: text follows the quote in line 5 that closes field 2"));
  EXPECT_THAT(log, HasSubstr("in0.csv:4: column 1 (y): 'what' is not 0 or 1"));
}

TEST(ImportCsv, InputBytesAreEscapedInMessages) {
  ExpectError(ErrorCode::kData, HasSubstr("'\\x1b[31m\\xff' is not 0 or 1"),
              [] { Csv(kThreeColumns, {"y,a,b\n\x1b[31m\xff,c,1\n"}).Import(); });
  ExpectError(ErrorCode::kConfig, HasSubstr("column 3 '\\x07' is not in"),
              [] { Csv(kThreeColumns, {"y,a,\x07\n"}).Import(); });
}

}  // namespace
}  // namespace renzan
