#include "renzan/embedding/sparse_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "renzan/embedding/kernels.h"
#include "renzan/embedding/shard.h"
#include "renzan/embedding/testing.h"

namespace renzan {
namespace {

// L2 decay is part of the gradient that the optimizer state sees; decoupled decay is not.
TEST(ApplySparse, OnlyL2ReachesTheOptimizersState) {
  const TableSpec spec{.name = "t", .num_embeddings = 3, .embedding_dim = 2};
  const std::vector<float> gradients = {0.5f, -1.0f};
  const std::vector<Lookup> lookups = {MakeLookup(1, 0)};
  const uint16_t virtual_worker = 0;
  for (const auto& [mode, wd] :
       {std::pair{WeightDecayMode::kL2, 0.5}, std::pair{WeightDecayMode::kDecoupled, 0.5}}) {
    SparseOptimizerOptions options{
        .type = SparseOptimizerType::kAdagrad, .weight_decay = wd, .weight_decay_mode = mode};
    EmbeddingShard shard(spec, {0, {0, 1}, 0, 0}, FloatType::kFloat32, options,
                         InitialValues::kDraw, 3);
    const std::vector<float> before = WeightsOf(*shard.store);  // and draws all rows
    ApplySparse(options, {.learning_rate = 0.1}, {lookups, gradients.data(), &virtual_worker},
                nullptr, 0, &shard);
    const std::vector<float> after = WeightsOf(*shard.store), state = StateOf(*shard.store);
    for (size_t d = 0; d < 2; ++d) {
      const double w = before[2 + d];
      const bool l2 = mode == WeightDecayMode::kL2;
      const double g = gradients[d] + (l2 ? wd * w : 0);
      EXPECT_NEAR(state[2 + d], g * g, 1e-6);
      EXPECT_NEAR(after[2 + d], (l2 ? w : w * (1 - 0.1 * wd)) - 0.1 * g / std::abs(g), 1e-6);
    }
    for (size_t other : {0u, 1u, 4u, 5u}) EXPECT_EQ(after[other], before[other]);
  }
}

}  // namespace
}  // namespace renzan
