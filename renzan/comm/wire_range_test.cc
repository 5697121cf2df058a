#include "renzan/comm/wire_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

// Counts by comparing with the decoded values.
WireRange Seen(const std::vector<float>& values) {
  std::vector<float> arrived = values;
  RoundTrip(FloatType::kFloat16, arrived);
  WireRange range{.values = static_cast<int64_t>(values.size())};
  for (size_t i = 0; i < values.size(); ++i) {
    range.overflowed += std::isfinite(values[i]) && std::abs(values[i]) > 65504.0f ? 1 : 0;
    range.underflowed += values[i] != 0 && arrived[i] == 0 ? 1 : 0;
  }
  return range;
}

void ExpectSame(const std::vector<float>& values) {
  const WireRange range = Float16Range(values), seen = Seen(values);
  EXPECT_EQ(range.values, seen.values);
  EXPECT_EQ(range.overflowed, seen.overflowed);
  EXPECT_EQ(range.underflowed, seen.underflowed);
}

TEST(Float16Range, CountsWhatTheCodecLoses) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> edges = {0, -0.0f, infinity, std::nanf(""), 1};
  for (const float edge : {65504.0f, 0x1p-24f, 0x1p-25f, 0x1p-14f, 0x1p-149f}) {
    for (const float value : {edge, std::nextafter(edge, 0.0f), std::nextafter(edge, infinity)}) {
      edges.push_back(value);
      edges.push_back(-value);
    }
  }
  ExpectSame(edges);
  for (const float& edge : edges) ExpectSame({edge});

  std::vector<float> values;
  for (uint64_t i = 0; i < 10000; ++i) {
    const Philox::Block words = Philox::Draw(5, i);
    values.push_back(
        std::ldexp(Philox::Uniform(words[0]) - 0.5f, static_cast<int>(words[1] % 60) - 35));
  }
  ExpectSame(values);
  EXPECT_GT(Float16Range(values).overflowed, 100);
  EXPECT_GT(Float16Range(values).underflowed, 100);
}

TEST(WireRange, Adds) {
  WireRange sum{1, 2, 3};
  sum.Add({10, 20, 30});
  EXPECT_EQ(sum.values, 11);
  EXPECT_EQ(sum.overflowed, 22);
  EXPECT_EQ(sum.underflowed, 33);
}

}  // namespace
}  // namespace renzan
