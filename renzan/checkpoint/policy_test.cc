#include "renzan/checkpoint/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace renzan {
namespace {

constexpr CheckpointKind kFull = CheckpointKind::kFull;
constexpr CheckpointKind kIncremental = CheckpointKind::kIncremental;

TEST(Policy, NextKind) {
  struct Case {
    CheckpointCosts costs;  // has_base, base, increments, their bytes, full, incremental
    CheckpointKind expected;
  };
  const Case cases[] = {
      {{false, 0, 0, 0, 100, 1}, kFull},            // no base
      {{true, 100, 0, 0, 100, 1}, kIncremental},    // the first
      {{true, 100, 0, 0, 100, 99}, kIncremental},   // still smaller than a new base
      {{true, 100, 0, 0, 100, 100}, kFull},         // no gain
      {{true, 100, 0, 0, 100, 250}, kFull},         // larger: every row plus the row numbers
      {{true, 100, 1, 20, 100, 60}, kIncremental},  // exactly the average (120 / 2)
      {{true, 100, 1, 20, 100, 61}, kFull},         // one above the average
      {{true, 100, 3, 60, 100, 41}, kFull},         // 160 / 4 = 40
      {{true, 100, 99, 99, 100, 1}, kIncremental},  // increments that do not grow
      {{true, 100, 0, 0, 50, 60}, kFull},           // the model became smaller
      {{true, 1ull << 62, 1, 1, 1ull << 62, 5}, kIncremental},
  };
  for (const Case& c : cases)
    EXPECT_EQ(NextKind(c.costs), c.expected)
        << c.costs.increments << " increments, next " << c.costs.incremental_bytes;
}

// Compares with every fixed number of increments per base, for increments that saturate like the
// number of changed rows: none needs fewer bytes per checkpoint.
TEST(Policy, NoFixedNumberOfIncrementsIsCheaper) {
  constexpr uint64_t kBase = 10'000'000;
  for (const double rate : {0.001, 0.02, 0.1, 0.5, 3.0}) {
    const auto increment = [rate](int64_t n) {  // the n-th on a base
      return static_cast<uint64_t>(kBase * (1 - std::exp(-rate * static_cast<double>(n))));
    };
    CheckpointCosts costs{.has_base = true, .base_bytes = kBase, .full_bytes = kBase};
    for (;;) {
      costs.incremental_bytes = increment(costs.increments + 1);
      if (NextKind(costs) == kFull) break;
      costs.increment_bytes += costs.incremental_bytes;
      ++costs.increments;
    }
    const double ours = static_cast<double>(kBase + costs.increment_bytes) /
                        static_cast<double>(costs.increments + 1);
    double best = std::numeric_limits<double>::infinity();
    uint64_t sum = kBase;
    for (int64_t k = 0; k < 5000; sum += increment(++k))
      best = std::min(best, static_cast<double>(sum) / static_cast<double>(k + 1));
    EXPECT_DOUBLE_EQ(ours, best) << rate;
  }
}

TEST(Policy, KindForDeadline) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Case {
    CheckpointKind planned;
    double full, incremental, grace;
    CheckpointKind expected;
  };
  const Case cases[] = {
      {kFull, 70, 10, 100, kFull},               // just fits
      {kFull, 71, 10, 100, kIncremental},        // does not fit
      {kFull, 500, 400, 100, kIncremental},      // neither fits: the faster
      {kFull, 500, kNever, 100, kFull},          // there is no base
      {kIncremental, 1, 50, 100, kIncremental},  // fits, so it stays as planned
      {kIncremental, 60, 80, 100, kFull},        // slower than a full one
      {kIncremental, 90, 80, 100, kIncremental},
      {kFull, 1, 1, 0, kFull},
  };
  for (const Case& c : cases)
    EXPECT_EQ(KindForDeadline(c.planned, c.full, c.incremental, c.grace), c.expected)
        << c.full << " " << c.incremental;
}

}  // namespace
}  // namespace renzan
