#include "renzan/quality/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan {
namespace {

OutputMetrics Window(double signal, uint64_t seed) {
  OutputMetrics metrics;
  std::vector<float> logits, labels;
  for (uint64_t i = 0; i < 20000; ++i) {
    const Philox::Block words = Philox::Draw(seed, i);
    labels.push_back(words[0] % 4 == 0 ? 1.0f : 0.0f);
    logits.push_back(static_cast<float>(Philox::Normal(words[1], words[2]) +
                                        signal * static_cast<double>(labels.back())));
  }
  metrics.Add(logits, labels);
  return metrics;
}

TEST(DivergenceWatch, AdvisesOnceWhenTheModelDoesNotLearn) {
  DivergenceWatch watch;
  int advice = 0;
  for (uint64_t i = 0; i < 20; ++i)
    if (watch.Observe(100 * static_cast<int64_t>(i), Window(0, i))) ++advice;
  EXPECT_EQ(advice, 1);
}

TEST(DivergenceWatch, IsQuietWhenTheModelLearns) {
  DivergenceWatch watch;
  for (uint64_t i = 0; i < 20; ++i)
    EXPECT_FALSE(watch.Observe(100 * static_cast<int64_t>(i), Window(0.2, i)));
}

TEST(DivergenceWatch, IgnoresTheFirstSteps) {
  DivergenceWatch watch;
  for (uint64_t i = 0; i < 19; ++i)
    EXPECT_FALSE(watch.Observe(10 * static_cast<int64_t>(i), Window(0, i)));
}

TEST(DivergenceWatch, ContinuesFromItsSavedState) {
  const auto advised_at = [](bool saved) {
    DivergenceWatch watch;
    for (uint64_t i = 0; i < 20; ++i) {
      if (watch.Observe(100 * static_cast<int64_t>(i), Window(0, i))) return i;
      if (saved) watch = DivergenceWatch::FromIntegers(watch.ToIntegers());
    }
    return uint64_t{20};
  };
  EXPECT_LT(advised_at(false), 20u);
  EXPECT_EQ(advised_at(true), advised_at(false));
  EXPECT_THROW(DivergenceWatch::FromIntegers({}), Error);
}

}  // namespace
}  // namespace renzan
