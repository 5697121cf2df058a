#include "renzan/data/text/date.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/data/dataset/manifest.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;
using testing::WriteText;

std::vector<int64_t> Parse(const char* format, const char* text) {
  const auto parts = DateFormat(format).Parse(text);
  if (!parts) return {};
  return {parts->day, parts->weekday, parts->hour};
}

TEST(DateFormat, Parses) {
  EXPECT_THAT(Parse("%Y-%m-%d", "1970-01-01"), ElementsAre(0, 3, 0));  // a Thursday
  EXPECT_THAT(Parse("%Y-%m-%d", "1969-12-28"), ElementsAre(-4, 6, 0));
  EXPECT_THAT(Parse("%Y-%m-%d %H:%M:%S", "2024-02-29 23:59:60"), ElementsAre(19782, 3, 23));
  EXPECT_THAT(Parse("%d/%m/%Y", "1/3/2024"), ElementsAre(19783, 4, 0));
  EXPECT_THAT(Parse("%Y%m%dT%H", "20240301T07"), ElementsAre(19783, 4, 7));
  EXPECT_THAT(Parse("%d-%b-%Y", "01-JAN-1995"), ElementsAre(9131, 6, 0));
  EXPECT_THAT(Parse("%Y-%m-%dT%H:%M:%S.%fZ", "2024-03-01T07:08:09.123456Z"),
              ElementsAre(19783, 4, 7));
  EXPECT_THAT(Parse("%Y-%m-%dT%H:%M:%S-05:00", "2024-03-01T07:08:09-05:00"),
              ElementsAre(19783, 4, 7));
  EXPECT_THAT(Parse("%Y-%m-%dT%H:%M:%S-05:00", "2024-03-01T07:08:09-06:00"), ElementsAre());
  EXPECT_THAT(Parse("%s", "0"), ElementsAre(0, 3, 0));
  EXPECT_THAT(Parse("%s", "964982703"), ElementsAre(11168, 6, 18));  // 2000-07-30 18:45:03
  EXPECT_THAT(Parse("%s", "-1"), ElementsAre(-1, 2, 23));
  EXPECT_THAT(Parse("%H%%", "5%"), ElementsAre(0, 3, 5));
  EXPECT_THAT(Parse("%m/%d/%Y %I:%M %p", "3/1/2024 12:05 AM"), ElementsAre(19783, 4, 0));
  EXPECT_THAT(Parse("%m/%d/%Y %I:%M %p", "3/1/2024 12:05 pm"), ElementsAre(19783, 4, 12));
  EXPECT_THAT(Parse("%p %I", "PM 11"), ElementsAre(0, 3, 23));
  EXPECT_THAT(Parse("%s.%f", "964982703.25"), ElementsAre(11168, 6, 18));
  EXPECT_THAT(Parse("%Q", "964982703999"), ElementsAre(11168, 6, 18));
  EXPECT_THAT(Parse("%Q", "-1"), ElementsAre(-1, 2, 23));
  // ctime, RFC 2822
  EXPECT_THAT(Parse("%a %b %e %H:%M:%S %Y", "Fri Mar  1 07:08:09 2024"), ElementsAre(19783, 4, 7));
  EXPECT_THAT(Parse("%a %b %e %H:%M:%S %Y", "FRI Mar 15 07:08:09 2024"), ElementsAre(19797, 4, 7));
  EXPECT_THAT(Parse("%a, %d %b %Y %H:%M:%S +0000", "Fri, 01 Mar 2024 07:08:09 +0000"),
              ElementsAre(19783, 4, 7));
  EXPECT_THAT(Parse("%a %H", "Thu 5"), ElementsAre(0, 3, 5));
  EXPECT_THAT(Parse("%a %H", "Mon 5"), ElementsAre(0, 3, 5));  // no day to compare with
}

TEST(DateFormat, RefusesWhatIsNoDate) {
  for (const char* text : {"", "2023-02-29", "2024-13-01", "2024-00-01", "2024-1-32", "24-01-01",
                           "2024-01-01 ", " 2024-01-01", "2024-01", "2024/01/01", "2024-01-01T"})
    EXPECT_THAT(Parse("%Y-%m-%d", text), ElementsAre()) << text;
  for (const char* text : {"24:00", "7:60", "7:", ":7", "7"})
    EXPECT_THAT(Parse("%H:%M", text), ElementsAre()) << text;
  for (const char* text : {"0 AM", "13 AM", "5", "5 ", "5 a", "5 XM", "5 AMx", "17 PM"})
    EXPECT_THAT(Parse("%I %p", text), ElementsAre()) << text;
  for (const char* text : {"", "x", "1.5", "99999999999999", "99999999999999999999", "- 1"})
    EXPECT_THAT(Parse("%s", text), ElementsAre()) << text;
  EXPECT_THAT(Parse("%d %b %Y", "1 Foo 2024"), ElementsAre());
  for (const char* text : {"Sat 1 Mar 2024", "Foo 1 Mar 2024", "1 Mar 2024", "Fri  1 Mar 2024"})
    EXPECT_THAT(Parse("%a %d %b %Y", text), ElementsAre()) << text;
  EXPECT_THAT(Parse("%e %b %Y", "   1 Mar 2024"), ElementsAre());
  for (const char* text : {"", "x", "1.5", "1700000000123456", "9223372036854775808"})
    EXPECT_THAT(Parse("%Q", text), ElementsAre()) << text;
}

TEST(DateFormat, WrongFormats) {
  EXPECT_EQ(DateFormat("%Y-%m-%d").Problem(), "");
  EXPECT_THAT(DateFormat("%Y-%q").Problem(), HasSubstr("has '%q'"));
  EXPECT_THAT(DateFormat("%Y-%m-%d %").Problem(), HasSubstr("has '%'"));
  EXPECT_THAT(DateFormat("%Y-%m-%d %z").Problem(),
              AllOf(HasSubstr("has '%z'"), HasSubstr("%Q for seconds or milliseconds since 1970"),
                    HasSubstr("write an offset from UTC as it is")));
  EXPECT_THAT(DateFormat("%Y-%m").Problem(), HasSubstr("has neither"));
  EXPECT_THAT(DateFormat("%s%Q").Problem(), HasSubstr("choose one"));
  EXPECT_THAT(DateFormat("%a").Problem(), HasSubstr("has neither"));
  EXPECT_EQ(DateFormat("%Q").Problem(), "");
  EXPECT_TRUE(DateFormat("%Q").has_hour() && DateFormat("%Q").has_day());
  EXPECT_TRUE(DateFormat("%b %e %Y").has_day());
  for (const char* format : {"%Y-%m-%d %I", "%H %p", "%H %I %p"})
    EXPECT_THAT(DateFormat(format).Problem(), HasSubstr("must have %H, or both %I and %p"));
  EXPECT_EQ(DateFormat("%I%p").Problem(), "");
  EXPECT_TRUE(DateFormat("%I%p").has_hour());
  EXPECT_THAT(DateFormat("").Problem(), HasSubstr("has neither"));
  EXPECT_FALSE(DateFormat("%%Y-%m-%d").has_day());
}

ImportOptions DatedOptions(const TemporaryDirectory& dir, const std::string& schema,
                           const std::string& text, const std::string& name) {
  WriteFileAtomically(dir / (name + ".yaml"), schema);
  WriteText(dir / (name + ".csv"), text);
  ImportOptions options;
  options.inputs = {dir / (name + ".csv")};
  options.format = "csv";
  options.schema = dir / (name + ".yaml");
  options.output = dir / name;
  options.vocabulary = {"threshold:1"};
  return options;
}

constexpr char kDatedSchema[] = R"(
missing: ["?"]
columns:
  y: {role: label}
  when:
    role: date
    date: "%Y-%m-%d %H:%M"
    parts:
      hour: {role: categorical}
      day: {role: dense, transform: minmax}
      weekday: {role: dense}
  made: {role: date, date: "%s", parts: {day: {role: categorical}, weekday: {role: categorical}}}
)";

TEST(ImportDate, BecomesFeatures) {
  TemporaryDirectory dir;
  const ImportOptions options = DatedOptions(
      dir, kDatedSchema,
      "y,when,made\n1,2024-03-01 07:30,0\n0,2024-03-03 23:00,86400\n1,?,\n1,2024-03-05 7:00,1\n",
      "data");
  ImportDataset(options);
  const Dataset dataset(options.output);
  const DatasetSchema& schema = dataset.schema();
  EXPECT_THAT(schema.dense, ElementsAre("when.day", "when.weekday"));
  EXPECT_THAT(schema.dense_transforms, ElementsAre("minmax:19783:19787", "none"));
  ASSERT_EQ(schema.categorical.size(), 3U);
  EXPECT_EQ(schema.categorical[0].name, "when.hour");
  EXPECT_EQ(schema.categorical[1].name, "made.day");
  EXPECT_EQ(schema.categorical[2].name, "made.weekday");
  const Batch batch = ReadAll(dataset);
  EXPECT_THAT(batch.dense, ElementsAre(0, 4, 0.5f, 6, 0, 0, 1, 1));
  const auto values = [&](const char* feature) {
    return ReadVocabularyValues(options.output, dataset.manifest(), feature);
  };
  EXPECT_THAT(values("when.hour"), ElementsAre("7", "23"));
  EXPECT_THAT(values("made.day"), ElementsAre("0", "1"));
  EXPECT_THAT(values("made.weekday"), ElementsAre("3", "4"));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 0, 2));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(2, 3, 0, 2));
  EXPECT_THAT(batch.categorical[2].values, ElementsAre(2, 3, 0, 2));
  EXPECT_EQ(schema.parsing.at("when.day"), "missing '?', date '%Y-%m-%d %H:%M'");
  EXPECT_FALSE(schema.parsing.contains("when"));

  // A test set whose dates are read in another way.
  std::string other = kDatedSchema;
  other.replace(other.find("%m-%d"), 5, "%d-%m");
  ImportOptions test = DatedOptions(dir, other, "y,when,made\n1,2024-03-01 07:30,0\n", "test");
  test.vocabulary.clear();
  test.vocabulary_from = options.output;
  ExpectError(
      ErrorCode::kConfig,
      AllOf(HasSubstr("column 'when.day' was read into"), HasSubstr("date '%Y-%d-%m %H:%M'")),
      [&] { ImportDataset(test); });
}

TEST(ImportDate, BadRowsAndWrongSchemas) {
  TemporaryDirectory dir;
  ExpectError(
      ErrorCode::kData,
      HasSubstr("bad.csv:2: column 2 (when): '2024-02-30 1:00' is not a date of the "
                "format '%Y-%m-%d %H:%M'; fix the row, or skip bad rows with --on-bad-row skip; if "
                "the format is wrong, correct the column's 'date' in the schema"),
      [&] {
        ImportDataset(DatedOptions(dir, kDatedSchema, "y,when,made\n1,2024-02-30 1:00,\n", "bad"));
      });
  for (const auto& [made, advice] :
       {std::pair{"1700000000123", "; %s counts seconds: %Q counts milliseconds"},
        {"1700000000.5", "; with parts of a second, the format is %s.%f"}})
    ExpectError(ErrorCode::kData, HasSubstr(advice), [&] {
      ImportDataset(DatedOptions(dir, kDatedSchema, fmt::format("y,when,made\n1,?,{}\n", made),
                                 fmt::format("in {}", made)));
    });
  const struct {
    const char *column, *message;
  } kCases[] = {
      {"role: date", "date is missing"},
      {"role: dense, date: '%s'", "date belongs to role date"},
      {"role: categorical, parts: {day: {role: dense}}", "parts belongs to role date"},
      {"role: date, date: '%s'", "parts must name at least one of day, weekday and hour"},
      {"role: date, date: '%q', parts: {day: {role: dense}}", "date has '%q'"},
      {"role: date, date: '%s', parts: {year: {role: dense}}", "has 'year'"},
      {"role: date, date: '%s', parts: {day: {role: label}}", "role cannot be 'label'"},
      {"role: date, date: '%s', parts: {day: {}}", "day.role is missing"},
      {"role: date, date: '%H', parts: {day: {role: dense}}", "which the format does not give"},
      {"role: date, date: '%Y-%m-%d', parts: {hour: {role: dense}}",
       "which the format does not give"},
      {"role: date, date: '%s', parts: {hour: {role: categorical, transform: log}}",
       "transform belongs to role dense"},
  };
  for (const auto& test : kCases)
    ExpectError(ErrorCode::kConfig, HasSubstr(test.message), [&] {
      ImportDataset(DatedOptions(
          dir, fmt::format("columns: {{y: {{role: label}}, x: {{{}}}}}\n", test.column),
          "y,x\n1,2\n", fmt::format("in{}", &test - kCases)));
    });
}

}  // namespace
}  // namespace renzan
