#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/moment.h"
#include "renzan/cli/text/table.h"

namespace renzan {
namespace {

TEST(Table, AlignsColumns) {
  Table table({{"id", Table::Align::kRight}, {"name"}, {"state"}});
  table.Add({"7", "kaggle", "running"});
  table.Add({"12",
             "\xc3\xbc"
             "ber",
             ""});
  table.Add({"", "a\x1b[2J\nb", "pending"});
  EXPECT_EQ(table.Text(),
            "id  name     state\n"
            " 7  kaggle   running\n"
            "12  \xc3\xbc"
            "ber     -\n"
            " -  a?[2J?b  pending\n");
}

TEST(Table, WithoutRowsIsJustTheHeader) { EXPECT_EQ(Table({{"a"}, {"b"}}).Text(), "a  b\n"); }

TEST(Moment, IsLocalUnlessItSaysOtherwise) {
  ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  ::tzset();
  EXPECT_EQ(ParseMoment("2026-01-31"), 1'769'814'000'000);  // 2026-01-30T23:00:00Z
  EXPECT_EQ(ParseMoment("2026-07-31"), 1'785'448'800'000);  // in summer, two hours
  EXPECT_EQ(ParseMoment("2026-01-31 14:03"), ParseMoment("2026-01-31T13:03:00Z"));
  EXPECT_EQ(ParseMoment("2026-01-31T14:03:59"), ParseMoment("2026-01-31T18:33:59+05:30"));
  EXPECT_EQ(ParseMoment("2026-01-31T00:00:00-01:00"), ParseMoment("2026-01-31T01:00:00Z"));
  EXPECT_EQ(ParseMoment("1970-01-01T00:00:01Z"), 1000);
  for (const char* wrong :
       {"", "yesterday", "2026", "2026-02-30", "2026-02-30T00:00Z", "2026-13-01", "2026-1-1",
        "2026-01-31T25:00", "2026-01-31T", "2026-01-31Z", "2026-01-31T14:03:59+1", "31.01.2026",
        "2026-01-31T14:03:59 ", "2026-01-31T14:03:"})
    EXPECT_EQ(ParseMoment(wrong), std::nullopt) << wrong;
  ::unsetenv("TZ");
  ::tzset();
}

TEST(AmountsText, Durations) {
  EXPECT_EQ(DurationText(-5), "0s");
  EXPECT_EQ(DurationText(999), "0s");
  EXPECT_EQ(DurationText(59'999), "59s");
  EXPECT_EQ(DurationText(60'000), "1m00s");
  EXPECT_EQ(DurationText(192'000), "3m12s");
  EXPECT_EQ(DurationText(3'599'999), "59m59s");
  EXPECT_EQ(DurationText(7'500'000), "2h05m");
  EXPECT_EQ(DurationText(86'400'000), "1d00h");
  EXPECT_EQ(DurationText(86'400'000LL * 400 + 3'600'000 * 4), "400d04h");
}

TEST(AmountsText, DistantLocalTimesHaveADate) {
  ::setenv("TZ", "XXX-2", 1);  // two hours east of Greenwich
  ::tzset();
  const int64_t now = 1'700'000'000'000;  // 2023-11-14 22:13:20 UTC
  EXPECT_EQ(LocalTimeText(now, now), "00:13:20");
  EXPECT_EQ(LocalTimeText(now - 12 * 3'600'000, now), "12:13:20");
  EXPECT_EQ(LocalTimeText(now - 12 * 3'600'000 - 1000, now), "2023-11-14 12:13:19");
  EXPECT_EQ(LocalTimeText(now + 13 * 3'600'000, now), "2023-11-15 13:13:20");
}

TEST(AmountsText, Numbers) {
  EXPECT_EQ(NumberText(8), "8");
  EXPECT_EQ(NumberText(0.5), "0.5");
  EXPECT_EQ(NumberText(100), "100");
  EXPECT_EQ(NumberText(1.0 / 3), "0.333");
  EXPECT_EQ(NumberText(-0.0001), "0");
}

}  // namespace
}  // namespace renzan
