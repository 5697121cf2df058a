#include "renzan/optim/sparse_optimizers.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(SparseOptimizers, StatesOfARowLieOneAfterAnother) {
  for (const SparseOptimizerInfo& info : SparseOptimizers()) {
    EXPECT_EQ(InfoOf(info.type).name, info.name);
    int64_t next = 0;
    for (size_t i = 0; i < info.states.size(); ++i) {
      const StatePart part = PartOfState(info.type, i, 12);
      EXPECT_EQ(part.first, next) << info.states[i].name;
      EXPECT_EQ(part.width, info.states[i].per_row ? 1 : 12) << info.states[i].name;
      next += part.width;
    }
    EXPECT_EQ(StateFloatsPerRow(info.type, 12), next) << info.name;
  }
}

TEST(SparseOptimizers, OnlyAccumulatorsBeginAsConfigured) {
  using enum SparseOptimizerType;
  EXPECT_EQ(InitialStateOf({.type = kAdagrad, .initial_accumulator = 0.5}), 0.5f);
  EXPECT_EQ(InitialStateOf({.type = kRowWiseAdagrad, .initial_accumulator = 0.5}), 0.5f);
  for (const SparseOptimizerType type : {kAdam, kMomentum, kFtrl})
    EXPECT_EQ(InitialStateOf({.type = type, .initial_accumulator = 0.5}), 0);
}

}  // namespace
}  // namespace renzan
