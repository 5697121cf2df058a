// Lookup, exchange and the sparse update against a reference implementation, on 1 to 7 workers.

#include "renzan/embedding/sharded_embeddings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "renzan/base/philox.h"
#include "renzan/comm/testing.h"

namespace renzan {
namespace {

constexpr int64_t kBatch = 32, kDim = 6;
constexpr int kVirtualWorkers = 8;

std::vector<TableSpec> Tables() {
  return {{.name = "a", .num_embeddings = 5, .embedding_dim = kDim},
          {.name = "b", .num_embeddings = 50, .embedding_dim = kDim, .multi_hot = true},
          {.name = "c",
           .num_embeddings = 9,
           .embedding_dim = kDim,
           .pooling = Pooling::kMean,
           .multi_hot = true},
          {.name = "d", .num_embeddings = 3000, .embedding_dim = kDim}};
}

// The ids of the whole global batch of a step, by table.
std::vector<GlobalIds> GlobalBatch(int step) {
  std::vector<GlobalIds> ids;
  const std::vector<TableSpec> tables = Tables();
  for (size_t t = 0; t < tables.size(); ++t) {
    GlobalIds table;
    if (tables[t].multi_hot) table.offsets.push_back(0);
    for (uint64_t s = 0; s < kBatch; ++s) {
      const Philox::Block word = Philox::Draw(static_cast<uint64_t>(step) * 10 + t, s);
      const uint32_t length = tables[t].multi_hot ? word[0] % 5 : 1;  // also empty bags
      for (uint32_t i = 0; i < length; ++i)
        table.values.push_back(static_cast<int32_t>(
            Philox::Draw(word[1], i)[0] % static_cast<uint64_t>(tables[t].num_embeddings)));
      if (tables[t].multi_hot) table.offsets.push_back(static_cast<int32_t>(table.values.size()));
    }
    ids.push_back(std::move(table));
  }
  return ids;
}

// A made-up gradient of a pooled element: any fixed function of it.
float GradientOf(float pooled, int64_t sample, int64_t t, int64_t d) {
  return std::sin(static_cast<float>(sample * 7 + t * 3 + d)) + pooled;
}

float Rounded(FloatType wire, float x) {
  RoundTrip(wire, {&x, 1});
  return x;
}

using Weights = std::map<std::string, std::vector<float>>;

struct Recipe {
  FloatType forward = FloatType::kFloat32, backward = FloatType::kFloat32;
  SparseOptimizerOptions optimizer = {};
  float gradient_scale = 1.0f;
};

struct Trained {
  Weights weights;
  double squared_norm = 0;  // of the last step's gradients
};

Trained ReferenceTraining(const Recipe& recipe, int steps) {
  const auto& [forward, backward, optimizer, gradient_scale] = recipe;
  const float decay = static_cast<float>(optimizer.weight_decay);
  const float kept = static_cast<float>(1 - 0.1 * optimizer.weight_decay);
  double squared_norm = 0;
  ThreadPool pool(1);
  std::vector<EmbeddingTable> tables;
  for (const TableSpec& spec : Tables())
    tables.emplace_back(spec, FloatType::kFloat32, SparseOptimizerOptions{}, InitialValues::kDraw,
                        3, pool);
  for (int step = 0; step < steps; ++step) {
    const std::vector<GlobalIds> ids = GlobalBatch(step);
    squared_norm = 0;
    for (size_t t = 0; t < tables.size(); ++t) {
      const size_t dim = static_cast<size_t>(kDim);
      std::map<int32_t, std::vector<float>> sums;
      for (int64_t s = 0; s < kBatch; ++s) {
        const std::span<const int32_t> bag = ids[t].Bag(s);
        const bool mean = tables[t].spec.pooling == Pooling::kMean && bag.size() > 1;
        const float scale = mean ? 1.0f / static_cast<float>(bag.size()) : 1.0f;
        for (size_t d = 0; d < dim; ++d) {
          float pooled = 0;
          for (size_t i = 0; i < bag.size(); ++i) {
            const float w = tables[t].weights.floats()[static_cast<size_t>(bag[i]) * dim + d];
            pooled = i == 0 ? w : pooled + w;
          }
          if (mean) pooled *= scale;
          float g = GradientOf(Rounded(forward, pooled), s, static_cast<int64_t>(t),
                               static_cast<int64_t>(d));
          g = Rounded(backward, g);
          if (mean) g *= scale;
          for (int32_t id : bag) {
            auto [row, first] = sums.try_emplace(id, dim, std::nanf(""));
            float& sum = row->second[d];
            sum = std::isnan(sum) ? g : sum + g;
          }
        }
      }
      for (const auto& [id, sum] : sums)
        for (size_t d = 0; d < dim; ++d) {
          squared_norm += double{sum[d]} * double{sum[d]};
          float& w = tables[t].weights.floats()[static_cast<size_t>(id) * dim + d];
          float g = sum[d] * gradient_scale;
          if (decay != 0 && optimizer.weight_decay_mode == WeightDecayMode::kL2) g += decay * w;
          if (decay != 0 && optimizer.weight_decay_mode == WeightDecayMode::kDecoupled) w *= kept;
          w -= 0.1f * g;
        }
    }
  }
  Weights weights;
  for (const EmbeddingTable& table : tables)
    weights[table.spec.name] = {table.weights.floats().begin(), table.weights.floats().end()};
  return {weights, squared_norm};
}

Trained ShardedTraining(int world_size, int threads, const Recipe& recipe, int steps) {
  Weights weights;
  std::vector<double> norms;  // by worker
  std::mutex mutex;
  RunRanksAsThreads(world_size, [&](Communicator& comm) {
    ThreadPool pool(threads);
    ShardedEmbeddings embeddings(comm, pool,
                                 {.tables = Tables(),
                                  .batch = kBatch,
                                  .virtual_workers = kVirtualWorkers,
                                  .forward = recipe.forward,
                                  .backward = recipe.backward,
                                  .optimizer = recipe.optimizer,
                                  .seed = 3});
    const IndexRange own = VirtualWorkerRange(kVirtualWorkers, world_size, comm.rank());
    const int64_t n = kBatch / kVirtualWorkers, first_column = 5;
    double squared_norm = 0;
    const std::unique_ptr<PreparedBatch> batch = embeddings.MakePreparedBatch();
    for (int step = 0; step < steps; ++step) {
      const std::vector<GlobalIds> global = GlobalBatch(step);
      std::vector<std::vector<int32_t>> values(4), offsets(4);
      std::vector<IdsView> views;
      for (size_t t = 0; t < 4; ++t) {
        const bool multi_hot = !global[t].offsets.empty();
        if (multi_hot) offsets[t].push_back(0);
        for (int64_t s = own.begin * n; s < own.end * n; ++s) {
          for (int32_t id : global[t].Bag(s)) values[t].push_back(id);
          if (multi_hot) offsets[t].push_back(static_cast<int32_t>(values[t].size()));
        }
        views.push_back({values[t], offsets[t]});
      }
      batch->ids.Start(views);
      batch->ids.Continue();
      batch->ids.Finish();
      embeddings.LookUp(*batch);
      embeddings.ReceivePooled();
      BlockedMatrix pooled(n, first_column + 4 * kDim);
      for (int v = own.begin; v < own.end; ++v) {
        embeddings.ReadPooled(v, first_column, &pooled);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t t = 0; t < 4; ++t)
            for (int64_t d = 0; d < kDim; ++d) {
              const int64_t column = first_column + t * kDim + d;
              pooled.Set(i, column, GradientOf(pooled.at(i, column), v * n + i, t, d));
            }
        embeddings.WritePooledGradient(v, first_column, pooled);
      }
      embeddings.SendGradients();
      for (size_t table = 0; table < embeddings.tables().size(); ++table)
        embeddings.SortLookups(table, 0, batch.get());
      embeddings.ReceiveGradients(*batch);
      squared_norm = embeddings.SquaredGradientNorm(*batch);
      embeddings.Update(*batch, {.learning_rate = 0.1, .gradient_scale = recipe.gradient_scale});
    }
    std::lock_guard lock(mutex);
    norms.push_back(squared_norm);
    for (const EmbeddingTable& table : embeddings.tables())
      weights[table.spec.name] = {table.weights.floats().begin(), table.weights.floats().end()};
  });
  for (double norm : norms) EXPECT_EQ(norm, norms[0]);
  return {weights, norms[0]};
}

void ExpectTheReferenceOnAnyPlacement(const Recipe& recipe) {
  const Trained expected = ReferenceTraining(recipe, 3);
  const double norm = ShardedTraining(1, 1, recipe, 3).squared_norm;
  EXPECT_NEAR(norm, expected.squared_norm, 1e-9 * norm);
  for (int world_size : {1, 2, 3, 4, 7})
    for (int threads : {1, 2}) {
      const Trained trained = ShardedTraining(world_size, threads, recipe, 3);
      EXPECT_EQ(trained.weights, expected.weights)
          << world_size << " workers, " << threads << " threads";
      EXPECT_EQ(trained.squared_norm, norm) << world_size << " workers, " << threads << " threads";
    }
}

TEST(ShardedEmbeddings, AgreeWithTheReferenceBitForBit) {
  ExpectTheReferenceOnAnyPlacement({});
  ExpectTheReferenceOnAnyPlacement(
      {.forward = FloatType::kFloat16, .backward = FloatType::kBFloat16});
}

TEST(ShardedEmbeddings, DecayReachesTheRowsOfABatchOnceEach) {
  for (const WeightDecayMode mode : {WeightDecayMode::kDecoupled, WeightDecayMode::kL2})
    ExpectTheReferenceOnAnyPlacement(
        {.optimizer = {.weight_decay = 0.25, .weight_decay_mode = mode}, .gradient_scale = 0.75f});
}

// L2 decay is part of the gradient that the optimizer state sees; decoupled decay is not.
TEST(ApplySparse, OnlyL2ReachesTheOptimizersState) {
  ThreadPool pool(1);
  const TableSpec spec{.name = "t", .num_embeddings = 3, .embedding_dim = 2};
  const std::vector<float> gradients = {0.5f, -1.0f};
  const std::vector<Lookup> lookups = {MakeLookup(1, 0)};
  for (const auto& [mode, wd] :
       {std::pair{WeightDecayMode::kL2, 0.5}, std::pair{WeightDecayMode::kDecoupled, 0.5}}) {
    SparseOptimizerOptions options{
        .type = SparseOptimizerType::kAdagrad, .weight_decay = wd, .weight_decay_mode = mode};
    EmbeddingTable table(spec, FloatType::kFloat32, options, InitialValues::kDraw, 3, pool);
    const std::vector<float> before(table.weights.floats().begin(), table.weights.floats().end());
    ApplySparse(options, {.learning_rate = 0.1}, lookups, gradients.data(), &table);
    for (size_t d = 0; d < 2; ++d) {
      const double w = before[2 + d];
      const bool l2 = mode == WeightDecayMode::kL2;
      const double g = gradients[d] + (l2 ? wd * w : 0);
      EXPECT_NEAR(table.state[2 + d], g * g, 1e-6);
      EXPECT_NEAR(table.weights.floats()[2 + d],
                  (l2 ? w : w * (1 - 0.1 * wd)) - 0.1 * g / std::abs(g), 1e-6);
    }
    for (size_t other : {0u, 1u, 4u, 5u}) EXPECT_EQ(table.weights.floats()[other], before[other]);
  }
}

}  // namespace
}  // namespace renzan
