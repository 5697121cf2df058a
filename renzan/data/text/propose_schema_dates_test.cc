// What is proposed for columns of dates and times.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "renzan/data/text/propose_schema_testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Proposed;
using testing::SchemaOfColumn;

TEST(ProposeSchema, DatesWithConstantParts) {
  const auto schema_of = [](const std::string& format, const auto& value) {
    std::string text = "when,x,click\n";
    for (int row = 0; row < 100; ++row)
      text += fmt::format("{},{},{}\n", fmt::format(fmt::runtime(format), value(row)), row * 7 % 50,
                          row % 3 == 0 ? 1 : 0);
    return Proposed(text).schema;
  };
  EXPECT_THAT(schema_of("2024-01-{:02} 00:00:00", [](int row) { return row % 28 + 1; }),
              HasSubstr("parts: {day: {role: dense, transform: standardize}, weekday: {role: "
                        "categorical}}}  # text, 28 values"));
  EXPECT_THAT(schema_of("2024-01-{:02} 00:00:00", [](int row) { return row % 28 + 1; }),
              HasSubstr("; constant: hour\n"));
  EXPECT_THAT(schema_of("2024-01-{:02}", [](int row) { return row % 4 * 7 + 1; }),
              AllOf(HasSubstr("parts: {day: {role: dense, transform: standardize}}}"),
                    HasSubstr("; constant: weekday\n")));
  EXPECT_THAT(schema_of("2024-01-05 {:02}:00:00", [](int row) { return row % 24; }),
              AllOf(HasSubstr("parts: {hour: {role: categorical}}}"),
                    HasSubstr("; constant: day, weekday\n")));
  EXPECT_THAT(
      schema_of("2024-01-05 08:{:02}:00", [](int row) { return row % 60; }),
      AllOf(HasSubstr("when: {role: skip}"), HasSubstr("; constant: day, weekday, hour\n")));
}

// One bad row among many makes the column a text; the comment says what it is otherwise.
TEST(ProposeSchema, AFewTextsAmongDates) {
  const auto schema_of = [](int bad_rows) {
    std::string text = "when,x,click\n";
    for (int row = 0; row < 300; ++row)
      text += fmt::format("{},{},{}\n",
                          row < bad_rows ? "n/a 17:31"
                                         : fmt::format("2026-11-{:02} {:02}:{:02}", row % 28 + 1,
                                                       row % 24, row % 60),
                          row * 7 % 50, row % 3 == 0);
    return Proposed(text).schema;
  };
  EXPECT_THAT(schema_of(1),
              AllOf(HasSubstr("; if such as 'n/a 17:31' are bad rows among dates: {role: date, "
                              "date: \"%Y-%m-%d %H:%M\", parts: {weekday: {role: categorical}, "
                              "hour: {role: categorical}}}\n"),
                    Not(HasSubstr("several values"))));
  EXPECT_THAT(schema_of(30), Not(HasSubstr("among dates")));
}

TEST(ProposeSchema, DatesWithAnOffset) {
  const auto schema_of = [](const std::string& other_offset) {
    std::string text = "when,x,click\n";
    for (int row = 0; row < 100; ++row)
      text += fmt::format("2026-11-{:02}T{:02}:00:00{},{},{}\n", row % 28 + 1, row % 24,
                          row % 2 == 0 ? "+00:00" : other_offset, row * 7 % 50, row % 3 == 0);
    return Proposed(text).schema;
  };
  EXPECT_THAT(schema_of("+00:00"),
              HasSubstr("when: {role: date, date: \"%Y-%m-%dT%H:%M:%S+00:00\", parts: {day: "));
  EXPECT_THAT(schema_of("-01:00"), Not(HasSubstr("role: date")));
}

TEST(ProposeSchema, DatesThatMayHaveTheDayFirst) {
  const auto schema_of = [](const char* time, int days) {
    return SchemaOfColumn("when", [&](int row) {
      return fmt::format("{:02}/{:02}/2024{}", row % days + 1, row % 12 + 1, time);
    });
  };
  EXPECT_THAT(schema_of("", 12), AllOf(HasSubstr("date: \"%m/%d/%Y\""),
                                       HasSubstr("; if the day comes first: date: \"%d/%m/%Y\"")));
  EXPECT_THAT(schema_of(" 11:30", 12),
              AllOf(HasSubstr("date: \"%m/%d/%Y %H:%M\""),
                    HasSubstr("; if the day comes first: date: \"%d/%m/%Y %H:%M\"")));
  EXPECT_THAT(schema_of("", 28), AllOf(HasSubstr("date: \"%d/%m/%Y\""), Not(HasSubstr("first:"))));
}

TEST(ProposeSchema, TimesOfEveryKind) {
  constexpr const char* kWeekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const auto schema_of = [&](const std::string& name, const std::string& format) {
    return SchemaOfColumn(name, [&](int row) {
      return fmt::format(fmt::runtime(format), fmt::arg("day", row % 28 + 1),
                         fmt::arg("weekday", kWeekdays[row % 7]),  // in November 2026
                         fmt::arg("hour", row % 12 + 1), fmt::arg("row", row));
    });
  };
  for (const auto& [text, format] :
       {std::array{"2026-11-{day:02}T{hour:02}:43:50.123456", "%Y-%m-%dT%H:%M:%S.%f"},
        {"2026-11-{day:02}T{hour:02}:04", "%Y-%m-%dT%H:%M"},
        {"11/{day:02}/2026 {hour}:05 PM", "%m/%d/%Y %I:%M %p"},
        {"[{day:02}/Nov/2026:{hour:02}:04:29 +0000]", "[%d/%b/%Y:%H:%M:%S +0000]"},
        {"{weekday} Nov {day:>2} {hour:02}:04:29 2026", "%a %b %e %H:%M:%S %Y"},
        {"\"{weekday}, {day:02} Nov 2026 {hour:02}:04:29 -0130\"", "%a, %d %b %Y %H:%M:%S -0130"},
        {"\"{weekday}, {day:02} Nov 2026 {hour:02}:04:29 GMT\"", "%a, %d %b %Y %H:%M:%S GMT"},
        {"{day}.11.2026 {hour}:30", "%d.%m.%Y %H:%M"}})
    EXPECT_THAT(schema_of("when", text),
                HasSubstr(fmt::format("when: {{role: date, date: \"{}\", parts: {{day: ", format)));
  EXPECT_THAT(schema_of("ts", "17{row:03}00000.25"), HasSubstr("ts: {role: date, date: \"%s.%f\""));
  EXPECT_THAT(schema_of("ts", "17{row:03}00000123"), HasSubstr("ts: {role: date, date: \"%Q\""));
  EXPECT_THAT(schema_of("ts", "17{row:03}00000123456"), Not(HasSubstr("role: date")));
  EXPECT_THAT(schema_of("moment", "17{row:03}00000"),
              HasSubstr("; if they are seconds since 1970: {role: date, date: \"%s\""));
  EXPECT_THAT(schema_of("moment", "17{row:03}00000123"),
              HasSubstr("; if they are milliseconds since 1970: {role: date, date: \"%Q\""));
  EXPECT_THAT(schema_of("moment", "{row}"), Not(HasSubstr("since 1970")));
}

}  // namespace
}  // namespace renzan
