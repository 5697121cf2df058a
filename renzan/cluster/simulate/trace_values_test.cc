#include "renzan/cluster/simulate/trace_values.h"

#include <gmock/gmock.h>

namespace renzan::cluster::simulate {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

TEST(SplitFields, QuotesAsInRfc4180) {
  EXPECT_THAT(SplitFields("a,,\"b, \"\"c\"\"\",", ','),
              Optional(ElementsAre("a", "", "b, \"c\"", "")));
  EXPECT_THAT(SplitFields("", ','), Optional(ElementsAre("")));
  EXPECT_THAT(SplitFields("a\"b,c", ','), Optional(ElementsAre("a\"b", "c")));
  EXPECT_THAT(SplitFields("\"a|b,c", '|'), Optional(ElementsAre("\"a", "b,c")));
  for (const char* text : {"\"a", "\"a\"b,c", "\""}) EXPECT_FALSE(SplitFields(text, ',')) << text;
}

TEST(ParseSubmission, TimesAndSeconds) {
  EXPECT_THAT(ParseSubmission("1970-01-02 00:00:01"), Optional(86401.0));
  EXPECT_THAT(ParseSubmission("1970-01-02T00:00:01"), Optional(86401.0));
  EXPECT_THAT(ParseSubmission("1970-01-02T00:00:01.25Z"), Optional(86401.25));
  EXPECT_THAT(ParseSubmission("1970-01-02T01:30:01+01:30"), Optional(86401.0));
  EXPECT_THAT(ParseSubmission("1970-01-01T23:00:01-01:00"), Optional(86401.0));
  EXPECT_THAT(ParseSubmission("-7.5"), Optional(-7.5));
  for (const char* text : {"", "1970-01-02", "1970-01-02 00:00:0", "1970-01-02 00:00:01.", "nan",
                           "1970-01-02 00:00:01 Z", "1970-01-02 00:00:01+0100",
                           "1970-02-30 00:00:00", "Unknown", "1e300", "1970-01-02 00:00:01+24:00"})
    EXPECT_FALSE(ParseSubmission(text)) << text;
}

TEST(ParseElapsed, SecondsClocksAndUnits) {
  const struct {
    const char* text;
    double seconds;
  } cases[] = {{"90", 90},
               {"90.5", 90.5},
               {"00:01:30", 90},
               {"01:30", 90},
               {"1-01:30:00", 91800},
               {"100:00:00", 360000},
               {"1h30m", 5400},
               {"2d", 172800},
               {"1m30.5s", 90.5},
               {"02:00.5", 120.5},
               {"0", 0}};
  for (const auto& [text, seconds] : cases)
    EXPECT_THAT(ParseElapsed(text), Optional(Eq(seconds))) << text;
  for (const char* text : {"", "1:2:3:4", "00:60:00", "00:00:60", "1-", "-1:00", "30m1h", "1h1h",
                           "1h30", "h", "1-5", ":30", "1:", "Partition_Limit"})
    EXPECT_FALSE(ParseElapsed(text)) << text;
}

}  // namespace
}  // namespace renzan::cluster::simulate
