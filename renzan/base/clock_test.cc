#include "renzan/base/clock.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(Clock, UtcText) {
  EXPECT_EQ(FormatUtc(1.8e9), "2027-01-15T08:00:00Z");
  EXPECT_EQ(ParseUtc("2027-01-15T08:00:00Z"), 1.8e9);
  EXPECT_EQ(ParseUtc("2027-01-15T08:00:00.25Z"), 1.8e9 + 0.25);
  for (const char* text : {"", "2027-01-15", "2027-01-15T08:00:00", "2027-01-15T08:00:00+01:00",
                           "2027-01-15T08:00:00Zulu", "2027-13-15T08:00:00Z"})
    EXPECT_EQ(ParseUtc(text), std::nullopt) << text;
}

TEST(Clock, HttpDate) {
  EXPECT_EQ(ParseHttpDate("Fri, 15 Jan 2027 08:00:00 GMT"), 1.8e9);
  for (const char* text : {"", "Fri, 15 Jan 2027 08:00:00", "Fri, 15 Jan 2027 08:00:00 GMT+1",
                           "Fri, 15 Foo 2027 08:00:00 GMT", "2027-01-15T08:00:00Z"})
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
}

}  // namespace
}  // namespace renzan
