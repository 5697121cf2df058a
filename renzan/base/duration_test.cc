#include "renzan/base/duration.h"

#include <gtest/gtest.h>

#include <string>

namespace renzan {
namespace {

TEST(ParseDuration, Durations) {
  const struct {
    const char* text;
    double seconds;
  } cases[] = {
      {"0", 0},       {"0s", 0},      {"90s", 90},      {"10m", 600},
      {"1.5h", 5400}, {"2d", 172800}, {"250ms", 0.25},  {"0.5m", 30},
      {"007s", 7},    {"120s", 120},  {"0.001s", 1e-3}, {"100000d", 8.64e9},
  };
  for (const auto& c : cases) {
    ASSERT_TRUE(ParseDuration(c.text).has_value()) << c.text;
    EXPECT_DOUBLE_EQ(*ParseDuration(c.text), c.seconds) << c.text;
  }
}

TEST(ParseDuration, RejectsEverythingElse) {
  for (const char* text :
       {"",      "s",      "5",   "1.5", "00",   "-1s",  "+1s", "1e3s", "nan", "nans",
        "inf",   "infs",   "1 s", " 1s", "1s ",  "1S",   "1M",  "1w",   "1us", "1min",
        "1h30m", "1.2.3s", ".5s", "1.s", "0x1s", "1,5h", "1ss", "m",    ".s",  "."})
    EXPECT_FALSE(ParseDuration(text).has_value()) << text;
  // Too large for a double: as written, and only once converted to seconds.
  EXPECT_FALSE(ParseDuration(std::string(400, '9') + "s").has_value());
  EXPECT_TRUE(ParseDuration(std::string(308, '1') + "s").has_value());
  EXPECT_FALSE(ParseDuration(std::string(308, '1') + "d").has_value());
}

}  // namespace
}  // namespace renzan
