// Lookup, exchange and the sparse update against a reference implementation, on 1 to 7 workers and
// with random sharding plans.

#include "renzan/embedding/sharded_embeddings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "renzan/base/philox.h"
#include "renzan/comm/testing.h"
#include "renzan/embedding/scattered_row_store_for_test.h"
#include "renzan/embedding/testing.h"
#include "renzan/plan/testing.h"

namespace renzan {
namespace {

constexpr int64_t kBatch = 32, kDim = 6;
constexpr int kVirtualWorkers = 8;
constexpr float kRate = 0.1f;

struct IdsOfTable {
  std::vector<int64_t> values;
  std::vector<int32_t> offsets;
  std::vector<float> weights;  // of multi-hot tables
  std::span<const int64_t> Bag(int64_t bag) const {
    if (offsets.empty()) return {values.data() + bag, 1};
    const size_t s = static_cast<size_t>(bag);
    return {values.data() + offsets[s], static_cast<size_t>(offsets[s + 1] - offsets[s])};
  }
};

std::vector<TableSpec> Tables() {
  return {{.name = "a", .num_embeddings = 5, .embedding_dim = kDim},
          {.name = "b", .num_embeddings = 50, .embedding_dim = kDim, .multi_hot = true},
          {.name = "c",
           .num_embeddings = 9,
           .embedding_dim = kDim,
           .pooling = Pooling::kMean,
           .multi_hot = true},
          {.name = "d", .num_embeddings = 3000, .embedding_dim = kDim},
          {.name = "e", .num_embeddings = 40, .embedding_dim = kDim, .features = {0, 0}},
          {.name = "f",
           .num_embeddings = 60,
           .embedding_dim = kDim,
           .multi_hot = true,
           .features = {0, 2}}};
}

// The same, all of them divided into blocks.
std::vector<TableSpec> TablesOfBlocks() {
  std::vector<TableSpec> tables = Tables();
  tables[0].row_blocks = 2;
  tables[1].row_blocks = 8;
  tables[1].column_blocks = 2;
  tables[2].row_blocks = 4;
  tables[2].column_blocks = 3;
  tables[3].row_blocks = 8;
  tables[4].row_blocks = 2;
  tables[5].row_blocks = 4;
  tables[5].column_blocks = 2;
  return tables;
}

// The same; the lookups of some have weights, of which some are below 0.
std::vector<TableSpec> WeightedTables() {
  std::vector<TableSpec> tables = TablesOfBlocks();
  for (const size_t t : {1u, 2u, 5u}) tables[t].weighted = true;
  return tables;
}

// The ids of the whole global batch of a step, by table.
std::vector<IdsOfTable> GlobalBatch(int step) {
  std::vector<IdsOfTable> ids;
  const std::vector<TableSpec> tables = Tables();
  for (size_t t = 0; t < tables.size(); ++t) {
    IdsOfTable table;
    if (tables[t].multi_hot) table.offsets.push_back(0);
    for (uint64_t s = 0; s < static_cast<uint64_t>(kBatch * tables[t].bags()); ++s) {
      const Philox::Block word = Philox::Draw(static_cast<uint64_t>(step) * 10 + t, s);
      const uint32_t length = tables[t].multi_hot ? word[0] % 5 : 1;  // also empty bags
      for (uint32_t i = 0; i < length; ++i) {
        const Philox::Block of_id = Philox::Draw(word[1], i);
        table.values.push_back(
            static_cast<int64_t>(of_id[0] % static_cast<uint64_t>(tables[t].num_embeddings)));
        if (tables[t].multi_hot)
          table.weights.push_back(of_id[1] % 7 == 0 ? 0 : Philox::Uniform(of_id[2]) - 0.25f);
      }
      if (tables[t].multi_hot) table.offsets.push_back(static_cast<int32_t>(table.values.size()));
    }
    ids.push_back(std::move(table));
  }
  return ids;
}

// A made-up gradient of a pooled element: any fixed function of it.
float GradientOf(float pooled, int64_t bag, int64_t t, int64_t d) {
  return std::sin(static_cast<float>(bag * 7 + t * 3 + d)) + pooled;
}

// For a codec that rounds value by value.
float Rounded(RowCodec wire, float x) {
  RoundTripRow(wire, {&x, 1});
  return x;
}

using Weights = std::map<std::string, std::vector<float>>;  // by table: rows, row-wise states

struct Recipe {
  std::vector<TableSpec> tables = Tables();
  RowCodec forward = RowCodec::kFloat32, backward = RowCodec::kFloat32;
  SparseOptimizerOptions optimizer = {};
  float gradient_scale = 1.0f;
  int64_t error_feedback_rows = 0;  // the reference has as many as it needs
};

struct Trained {
  Weights weights;
  double squared_norm = 0;  // of the last step's gradients
};

// The balanced tree over leaves, some of which are missing.
using Leaves = std::map<size_t, float>;
float TreeOf(const Leaves& leaves, RowCodec wire, size_t begin, size_t size) {
  if (size == 1) return leaves.contains(begin) ? leaves.at(begin) : std::nanf("");
  const float left = TreeOf(leaves, wire, begin, size / 2);
  const float right = TreeOf(leaves, wire, begin + size / 2, size / 2);
  if (std::isnan(left)) return right;
  if (std::isnan(right)) return left;
  return Rounded(wire, left + right);
}

float SumOfSquares16(std::span<const float> g) {  // up to 16
  float tree[16] = {};
  for (size_t i = 0; i < g.size(); ++i) tree[i] = g[i] * g[i];
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) tree[i] += tree[i + half];
  return tree[0];
}

// The initial values, from one worker that holds everything.
Weights InitialWeights() {
  Weights weights;
  for (const TableSpec& spec : Tables()) {
    EmbeddingShard shard(spec, {0, {0, 1}, 0, 0}, FloatType::kFloat32, {}, InitialValues::kDraw, 3);
    weights[spec.name] = WeightsOf(*shard.store);
  }
  return weights;
}

Trained ReferenceTraining(const Recipe& recipe, int steps) {
  const SparseOptimizerOptions& optimizer = recipe.optimizer;
  const bool row_wise = optimizer.type == SparseOptimizerType::kRowWiseAdagrad;
  const float decay = static_cast<float>(optimizer.weight_decay);
  const float kept = static_cast<float>(1 - 0.1 * optimizer.weight_decay);
  const size_t dim = static_cast<size_t>(kDim);
  double squared_norm = 0;
  Weights weights = InitialWeights();
  std::map<std::string, std::vector<float>> states;
  using Bag = std::vector<int64_t>;
  std::map<std::tuple<int64_t, size_t, Bag, size_t>, float> residuals;  // by v, table, ids, column
  for (int step = 0; step < steps; ++step) {
    const std::vector<IdsOfTable> ids = GlobalBatch(step);
    squared_norm = 0;
    for (size_t t = 0; t < recipe.tables.size(); ++t) {
      const TableSpec& table = recipe.tables[t];
      std::vector<float>& rows = weights[table.name];
      states[table.name].resize(static_cast<size_t>(table.num_embeddings));
      std::map<int64_t, std::vector<Leaves>> sums;  // by row and column: over virtual workers
      const int64_t bags = kBatch * table.bags(), of_virtual_worker = bags / kVirtualWorkers;
      for (int64_t s = 0; s < bags; ++s) {
        const std::span<const int64_t> bag = ids[t].Bag(s);
        const bool mean = table.divides_by_length() && bag.size() > 1;
        const auto weighted = [&](size_t i, float x) {
          if (!table.weighted) return x;
          return ids[t].weights[static_cast<size_t>(bag.data() - ids[t].values.data()) + i] * x;
        };
        const float scale = mean ? 1.0f / static_cast<float>(bag.size()) : 1.0f;
        for (size_t d = 0; d < dim; ++d) {
          Leaves blocks;
          for (size_t i = 0; i < bag.size(); ++i) {
            const int64_t id = bag[i];
            const float w = weighted(i, rows[static_cast<size_t>(id) * dim + d]);
            const auto [leaf, first] =
                blocks.try_emplace(static_cast<size_t>(id % table.row_blocks), w);
            if (!first) leaf->second += w;
          }
          for (auto& [block, leaf] : blocks) leaf = Rounded(recipe.forward, leaf);
          float pooled = 0;
          if (!bag.empty())
            pooled = TreeOf(blocks, recipe.forward, 0, static_cast<size_t>(table.row_blocks));
          if (mean) pooled *= scale;
          float g = GradientOf(pooled, s, static_cast<int64_t>(t), static_cast<int64_t>(d));
          if (mean) g *= scale;
          float* residual = nullptr;
          if (recipe.error_feedback_rows > 0 && !bag.empty()) {
            residual = &residuals[{s / of_virtual_worker, t, Bag(bag.begin(), bag.end()), d}];
            g += *residual;
          }
          const float received = Rounded(recipe.backward, g);
          if (residual != nullptr) *residual = g - received;
          g = received;
          for (size_t i = 0; i < bag.size(); ++i) {
            sums[bag[i]].resize(dim);
            sums[bag[i]][d][static_cast<size_t>(s / of_virtual_worker)] += weighted(i, g);
          }
        }
      }
      for (const auto& [id, of_columns] : sums) {
        std::vector<float> g(dim);
        float* w = rows.data() + static_cast<size_t>(id) * dim;
        for (size_t d = 0; d < dim; ++d) {
          g[d] = TreeOf(of_columns[d], RowCodec::kFloat32, 0, kVirtualWorkers);
          squared_norm += double{g[d]} * double{g[d]};
          g[d] *= recipe.gradient_scale;
          if (decay != 0 && optimizer.weight_decay_mode == WeightDecayMode::kL2)
            g[d] += decay * w[d];
          if (decay != 0 && optimizer.weight_decay_mode == WeightDecayMode::kDecoupled)
            w[d] *= kept;
        }
        float rate = kRate;
        if (row_wise) {
          float total = 0;
          const size_t columns = static_cast<size_t>(table.block_columns());
          for (size_t first = 0; first < dim; first += columns)
            total += SumOfSquares16(std::span(g).subspan(first, columns));
          float& state = states[table.name][static_cast<size_t>(id)];
          state += total / static_cast<float>(dim);
          rate = kRate / (std::sqrt(state) + static_cast<float>(optimizer.epsilon));
        }
        for (size_t d = 0; d < dim; ++d) w[d] -= rate * g[d];
      }
    }
  }
  for (const auto& [name, state] : states)
    if (row_wise) weights[name].insert(weights[name].end(), state.begin(), state.end());
  return {weights, squared_norm};
}

ShardingPlan TableWise(const std::vector<TableSpec>& tables, int world_size) {
  ShardingPlan plan;
  for (size_t t = 0; t < tables.size(); ++t)
    for (int column = 0; column < tables[t].column_blocks; ++column)
      plan.shards.push_back(
          {t, {0, tables[t].row_blocks}, column, static_cast<int>(t) % world_size});
  return plan;
}

// Writes the shard's values to their places in the whole table.
void CopyToTable(EmbeddingShard& shard, bool row_wise, std::vector<float>* table) {
  const size_t dim = static_cast<size_t>(shard.table.embedding_dim);
  const size_t width = static_cast<size_t>(shard.dim());
  const size_t rows = static_cast<size_t>(shard.table.num_embeddings);
  table->resize(rows * dim + (row_wise ? rows : 0), std::nanf(""));
  const auto put = [&](size_t at, float value) {
    if (!std::isnan((*table)[at])) {
      EXPECT_EQ((*table)[at], value) << "replicas differ";
    }
    (*table)[at] = value;
  };
  const std::vector<float> weights = WeightsOf(*shard.store), state = StateOf(*shard.store);
  for (const EmbeddingShard::Block& block : shard.blocks) {
    for (int64_t i = 0; i < block.num_rows; ++i) {
      const size_t local = static_cast<size_t>(block.first_row + i);
      const size_t row = static_cast<size_t>(i * shard.table.row_blocks + block.row_block);
      for (size_t d = 0; d < width; ++d)
        put(row * dim + static_cast<size_t>(shard.first_column()) + d, weights[local * width + d]);
      if (row_wise) put(rows * dim + row, state[local]);
    }
  }
}

// Where the rows of all shards are.
enum class Rows { kInMemory, kScattered };

Trained ShardedTraining(int world_size, int threads, const ShardingPlan& plan, const Recipe& recipe,
                        int steps, Rows rows = Rows::kInMemory) {
  MakeRowStore make_store;
  if (rows == Rows::kScattered)
    make_store = [](RowStoreOptions options, ThreadPool* pool) {
      return std::make_unique<ScatteredRowStore>(std::move(options), pool);
    };
  Weights weights;
  std::vector<double> norms;  // by worker
  std::mutex mutex;
  RunRanksAsThreads(world_size, [&](Communicator& comm) {
    ThreadPool pool(threads);
    ShardedEmbeddings embeddings(comm, pool,
                                 {.tables = recipe.tables,
                                  .plan = plan,
                                  .batch = kBatch,
                                  .virtual_workers = kVirtualWorkers,
                                  .forward = recipe.forward,
                                  .backward = recipe.backward,
                                  .error_feedback_rows = recipe.error_feedback_rows,
                                  .optimizer = recipe.optimizer,
                                  .seed = 3,
                                  .make_store = make_store});
    const IndexRange own = embeddings.map().own();
    const int64_t n = kBatch / kVirtualWorkers, first_column = 5;
    const std::vector<BagPlace> places = SideBySide(recipe.tables, first_column);
    double squared_norm = 0;
    const std::unique_ptr<PreparedBatch> batch = embeddings.MakePreparedBatch();
    for (int step = 0; step < steps; ++step) {
      const std::vector<IdsOfTable> global = GlobalBatch(step);
      std::vector<std::vector<int64_t>> values(global.size());
      std::vector<std::vector<int32_t>> offsets(global.size());
      std::vector<std::vector<float>> weights_of_ids(global.size());
      std::vector<IdsView> views;
      for (size_t t = 0; t < global.size(); ++t) {
        const bool multi_hot = !global[t].offsets.empty();
        if (multi_hot) offsets[t].push_back(0);
        const int64_t of_virtual_worker = n * recipe.tables[t].bags();
        for (int64_t s = own.begin * of_virtual_worker; s < own.end * of_virtual_worker; ++s) {
          for (const int64_t& id : global[t].Bag(s)) {
            values[t].push_back(id);
            if (recipe.tables[t].weighted)
              weights_of_ids[t].push_back(
                  global[t].weights[static_cast<size_t>(&id - global[t].values.data())]);
          }
          if (multi_hot) offsets[t].push_back(static_cast<int32_t>(values[t].size()));
        }
        views.push_back({values[t], offsets[t], weights_of_ids[t]});
      }
      batch->ids.Start(views);
      batch->ids.Continue();
      batch->ids.Finish();
      embeddings.LookUp(batch.get());
      embeddings.ReceivePooled();
      embeddings.BeginGradients(*batch);
      BlockedMatrix pooled(n, first_column + std::ssize(places) * kDim);
      for (int v = own.begin; v < own.end; ++v) {
        embeddings.ReadPooled(*batch, v, places, {&pooled, 1});
        for (int64_t i = 0; i < n; ++i) {
          for (size_t t = 0; t < global.size(); ++t) {
            const IndexRange bags = embeddings.map().bags_of(t);
            for (int bag = bags.begin; bag < bags.end; ++bag)
              for (int64_t d = 0; d < kDim; ++d) {
                const int64_t column = places[static_cast<size_t>(bag)].column + d;
                const int64_t s = (v * n + i) * bags.size() + bag - bags.begin;
                pooled.Set(i, column,
                           GradientOf(pooled.at(i, column), s, static_cast<int64_t>(t), d));
              }
          }
        }
        embeddings.WritePooledGradient(*batch, views, v, places, {&pooled, 1});
      }
      embeddings.SendGradients(*batch);
      for (size_t held = 0; held < embeddings.shards().size(); ++held)
        embeddings.SortLookups(held, 0, batch.get());
      embeddings.ReceiveGradients(*batch);
      squared_norm = embeddings.SquaredGradientNorm(*batch);
      embeddings.Update(*batch, {.learning_rate = 0.1, .gradient_scale = recipe.gradient_scale});
      embeddings.Unpin(batch.get());
    }
    if (rows == Rows::kScattered)
      for (const EmbeddingShard& shard : embeddings.shards())
        EXPECT_EQ(dynamic_cast<const ScatteredRowStore&>(*shard.store).pinned(), 0);
    std::lock_guard lock(mutex);
    norms.push_back(squared_norm);
    for (EmbeddingShard& shard : embeddings.shards())
      CopyToTable(shard, recipe.optimizer.type == SparseOptimizerType::kRowWiseAdagrad,
                  &weights[shard.table.name]);
  });
  for (double norm : norms) EXPECT_EQ(norm, norms[0]);
  return {weights, norms[0]};
}

// `plans`: how many random plans per number of workers; 0: table-wise. Some of the runs have rows
// in slots other than their own number.
void ExpectTheReferenceOnAnyPlacement(const Recipe& recipe, int plans = 0) {
  const Trained expected = ReferenceTraining(recipe, 3);
  const double norm = ShardedTraining(1, 1, TableWise(recipe.tables, 1), recipe, 3).squared_norm;
  EXPECT_NEAR(norm, expected.squared_norm, 1e-9 * norm);
  for (int world_size : {1, 2, 3, 4, 7})
    for (int i = 0; i < std::max(plans, 1); ++i) {
      const int threads = 1 + (world_size + i) % 2;
      const ShardingPlan plan = plans == 0 ? TableWise(recipe.tables, world_size)
                                           : RandomPlan(recipe.tables, world_size,
                                                        static_cast<uint64_t>(i * 10 + world_size));
      const Rows rows = (world_size + i) % 3 == 0 ? Rows::kScattered : Rows::kInMemory;
      SCOPED_TRACE(fmt::format("{} workers, {} threads, plan {}, rows {}", world_size, threads, i,
                               rows == Rows::kScattered ? "scattered" : "in memory"));
      const Trained trained = ShardedTraining(world_size, threads, plan, recipe, 3, rows);
      EXPECT_EQ(trained.weights, expected.weights);
      EXPECT_EQ(trained.squared_norm, norm);
    }
}

TEST(ShardedEmbeddings, AgreeWithTheReferenceBitForBit) {
  ExpectTheReferenceOnAnyPlacement({});
  ExpectTheReferenceOnAnyPlacement(
      {.forward = RowCodec::kFloat16, .backward = RowCodec::kBFloat16});
}

TEST(ShardedEmbeddings, AgreeWithTheReferenceUnderAnyPlan) {
  constexpr int kPlans = 6;
  ExpectTheReferenceOnAnyPlacement({.tables = TablesOfBlocks()}, kPlans);
  ExpectTheReferenceOnAnyPlacement(
      {.tables = TablesOfBlocks(), .forward = RowCodec::kFloat16, .backward = RowCodec::kBFloat16},
      kPlans);
}

TEST(ShardedEmbeddings, WeightedBagsAgreeWithTheReferenceUnderAnyPlan) {
  constexpr int kPlans = 4;
  ExpectTheReferenceOnAnyPlacement({.tables = WeightedTables()}, kPlans);
  ExpectTheReferenceOnAnyPlacement(
      {.tables = WeightedTables(),
       .forward = RowCodec::kFloat16,
       .backward = RowCodec::kBFloat16,
       .optimizer = {.type = SparseOptimizerType::kRowWiseAdagrad, .weight_decay = 0.25},
       .error_feedback_rows = 1 << 16},
      kPlans);
  EXPECT_NE(ReferenceTraining({.tables = WeightedTables()}, 3).weights,
            ReferenceTraining({.tables = TablesOfBlocks()}, 3).weights);
}

TEST(ShardedEmbeddings, RowsWithAScaleOfTheirOwnDependOnNoPlan) {
  for (const auto& [forward, backward] :
       {std::pair{RowCodec::kInt8, RowCodec::kInt4}, std::pair{RowCodec::kInt4, RowCodec::kInt8}}) {
    const Recipe recipe{.tables = TablesOfBlocks(), .forward = forward, .backward = backward};
    const Trained expected = ShardedTraining(1, 1, TableWise(recipe.tables, 1), recipe, 3);
    EXPECT_NE(expected.weights, ReferenceTraining({.tables = TablesOfBlocks()}, 3).weights);
    for (const int world_size : {1, 2, 3, 4, 7})
      for (uint64_t seed = 0; seed < 6; ++seed) {
        const ShardingPlan plan = RandomPlan(recipe.tables, world_size, seed);
        const Trained trained = ShardedTraining(world_size, 2, plan, recipe, 3);
        EXPECT_EQ(trained.weights, expected.weights) << world_size << " workers, plan " << seed;
        EXPECT_EQ(trained.squared_norm, expected.squared_norm);
      }
  }
}

TEST(ShardedEmbeddings, ErrorFeedbackAgreesWithTheReferenceUnderAnyPlan) {
  const Recipe recipe{
      .tables = TablesOfBlocks(), .backward = RowCodec::kBFloat16, .error_feedback_rows = 1 << 16};
  ExpectTheReferenceOnAnyPlacement(recipe, 3);
  Recipe without = recipe;
  without.error_feedback_rows = 0;
  EXPECT_NE(ReferenceTraining(recipe, 3).weights, ReferenceTraining(without, 3).weights);
}

// With so few slots that bags take them from each other.
TEST(ShardedEmbeddings, ErrorFeedbackWithFewSlotsDependsOnNoPlan) {
  const Recipe recipe{
      .tables = TablesOfBlocks(), .backward = RowCodec::kInt4, .error_feedback_rows = 4};
  const Trained expected = ShardedTraining(1, 1, TableWise(recipe.tables, 1), recipe, 5);
  for (const int world_size : {1, 2, 3, 4, 7})
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const ShardingPlan plan = RandomPlan(recipe.tables, world_size, seed);
      const Trained trained = ShardedTraining(world_size, 2, plan, recipe, 5);
      EXPECT_EQ(trained.weights, expected.weights) << world_size << " workers, plan " << seed;
    }
}

// One state for a row, whose columns may be on several workers; L2 decay is part of its square.
TEST(ShardedEmbeddings, RowWiseStatesAreThoseOfWholeRowsUnderAnyPlan) {
  for (const WeightDecayMode mode : {WeightDecayMode::kDecoupled, WeightDecayMode::kL2})
    ExpectTheReferenceOnAnyPlacement({.tables = TablesOfBlocks(),
                                      .optimizer = {.type = SparseOptimizerType::kRowWiseAdagrad,
                                                    .weight_decay = 0.25,
                                                    .weight_decay_mode = mode},
                                      .gradient_scale = 0.75f},
                                     3);
}

TEST(ShardedEmbeddings, DecayReachesTheRowsOfABatchOnceEach) {
  for (const WeightDecayMode mode : {WeightDecayMode::kDecoupled, WeightDecayMode::kL2})
    ExpectTheReferenceOnAnyPlacement(
        {.optimizer = {.weight_decay = 0.25, .weight_decay_mode = mode}, .gradient_scale = 0.75f});
}

}  // namespace
}  // namespace renzan
