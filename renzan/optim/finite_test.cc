#include "renzan/optim/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace renzan {
namespace {

TEST(AllFinite, FindsOneBadValueAnywhere) {
  using Limits = std::numeric_limits<float>;
  for (const size_t n : {1u, 2u, 7u, 16u, 33u}) {
    std::vector<float> values(n, -Limits::max());
    values[n / 2] = Limits::denorm_min();
    EXPECT_TRUE(AllFinite(values));
    for (size_t i = 0; i < n; ++i) {
      for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                              -Limits::signaling_NaN()}) {
        std::vector<float> with = values;
        with[i] = bad;
        EXPECT_FALSE(AllFinite(with)) << bad << " at " << i << " of " << n;
      }
    }
  }
  EXPECT_TRUE(AllFinite({}));
}

}  // namespace
}  // namespace renzan
