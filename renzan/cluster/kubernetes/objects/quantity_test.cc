#include "renzan/cluster/kubernetes/objects/quantity.h"

#include <gtest/gtest.h>

namespace renzan::cluster::kubernetes {
namespace {

TEST(Quantity, Parses) {
  EXPECT_EQ(ParseMilli("100m"), 100);
  EXPECT_EQ(ParseMilli("0.1"), 100);
  EXPECT_EQ(ParseMilli("0.3"), 300);
  EXPECT_EQ(ParseMilli("1.5"), 1500);
  EXPECT_EQ(ParseMilli("4"), 4000);
  EXPECT_EQ(ParseMilli("1u"), 1);  // rounded up
  EXPECT_EQ(ParseUnits("512Mi"), 512 << 20);
  EXPECT_EQ(ParseUnits("1.5Gi"), 3LL << 29);
  EXPECT_EQ(ParseUnits("2G"), 2'000'000'000);
  EXPECT_EQ(ParseUnits("1e3"), 1000);
  EXPECT_EQ(ParseUnits("5E"), 5'000'000'000'000'000'000);
  EXPECT_EQ(ParseUnits("128974848000m"), 128'974'848);
  EXPECT_EQ(ParseUnits("0"), 0);
}

// It must not be taken for 0.
TEST(Quantity, WhatIsTooLargeIsTheLargestNumber) {
  for (const char* text : {"12E", "9999999999999999999999", "1e30", "1e9999", "9e9999"}) {
    EXPECT_EQ(ParseUnits(text), INT64_MAX) << text;
    EXPECT_EQ(ParseMilli(text), INT64_MAX) << text;
  }
  EXPECT_EQ(ParseUnits("1e-9999"), 0);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", "-1", "x", "1 Gi", "1GiB", "1.2.3", "Gi", "inf", "nan", "0x10"})
    EXPECT_EQ(ParseUnits(text), std::nullopt) << text;
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
