#include "renzan/base/bytes_text.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(BytesText, ChoosesADecimalUnit) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1000), "1.0 kB");
  EXPECT_EQ(BytesText(999'949), "999.9 kB");
  EXPECT_EQ(BytesText(999'950), "1.0 MB");
  EXPECT_EQ(BytesText(9'123'036), "9.1 MB");
  EXPECT_EQ(BytesText(1'234'000'000), "1.2 GB");
  EXPECT_EQ(BytesText(5'000'000'000'000'000), "5000.0 TB");
}

}  // namespace
}  // namespace renzan
