#include "renzan/embedding/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/base/simd_testing.h"

namespace renzan {
namespace {

TEST(DrawInitialRows, IsItsDefinitionOnEveryInstructionSet) {
  constexpr uint64_t kKey = 0x123456789ABCDEF0;
  constexpr float kBound = 0.037f;
  renzan::testing::OnEveryInstructionSet([&] {
    for (const int64_t columns : {1, 3, 4, 6, 8, 20, 64, 100})
      for (const int64_t first_column : {0, 3, 8})
        for (const int64_t rows : {1, 2, 7, 33}) {
          // Rows beyond 32 bits, too.
          constexpr int64_t kFirst = (int64_t{1} << 32) - 20, kStride = 8;
          std::vector<float> drawn(static_cast<size_t>(rows * columns));
          DrawInitialRows(kKey, kBound, kFirst, kStride, first_column, columns, drawn);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c) {
              const uint64_t column = static_cast<uint64_t>(first_column + c);
              const Philox::Block words =
                  Philox::Draw(kKey, static_cast<uint64_t>(kFirst + r * kStride), column / 4);
              ASSERT_EQ(drawn[static_cast<size_t>(r * columns + c)],
                        kBound * (2.0f * Philox::Uniform(words[column % 4]) - 1.0f))
                  << columns << " columns from " << first_column << ", at " << r << ", " << c;
            }
        }
  });
}

TEST(DrawInitialRows, FillsTheRangeEvenly) {
  std::vector<float> drawn(64 * 1000);
  DrawInitialRows(7, 2.0f, 0, 1, 0, 64, drawn);
  const auto [least, most] = std::minmax_element(drawn.begin(), drawn.end());
  EXPECT_GE(*least, -2.0f);
  EXPECT_LT(*least, -1.99f);
  EXPECT_LT(*most, 2.0f);
  EXPECT_GT(*most, 1.99f);
  double sum = 0;
  for (const float value : drawn) sum += static_cast<double>(value);
  EXPECT_NEAR(sum / static_cast<double>(drawn.size()), 0, 0.02);
}

}  // namespace
}  // namespace renzan
