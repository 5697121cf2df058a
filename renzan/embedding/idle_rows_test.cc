#include "renzan/embedding/idle_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/embedding/idle_row_steps.h"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/scattered_row_store_for_test.h"
#include "renzan/embedding/shard.h"
#include "renzan/embedding/testing.h"

namespace renzan {
namespace {

constexpr int64_t kIdleRows = 37, kIdleDim = 19;

SparseOptimizerOptions AllRows(SparseOptimizerType type, double decay = 0,
                               WeightDecayMode mode = WeightDecayMode::kL2) {
  return {.type = type,
          .initial_accumulator = 0.01,
          .weight_decay = decay,
          .weight_decay_mode = mode,
          .all_rows = true};
}

// Of every optimizer whose idle rows move.
std::vector<SparseOptimizerOptions> AllThatMove() {
  using enum SparseOptimizerType;
  constexpr auto kDecoupled = WeightDecayMode::kDecoupled;
  std::vector<SparseOptimizerOptions> options;
  for (const SparseOptimizerType type : {kSgd, kAdagrad, kAdam, kMomentum}) {
    for (const double decay : {0.0, 1e-3, 0.5}) options.push_back(AllRows(type, decay));
    options.push_back(AllRows(type, 0.01, kDecoupled));
  }
  options.push_back(AllRows(kAdam));
  options.back().beta1 = 0;
  options.push_back(AllRows(kAdam));
  options.back().beta1 = 0.3;
  options.back().beta2 = 0.6;
  std::erase_if(options, [](const SparseOptimizerOptions& o) { return !IdleRowsMove(o); });
  return options;
}

struct IdleShard {
  explicit IdleShard(const SparseOptimizerOptions& with, bool scattered = false)
      : options(with),
        shard({.name = "t",
               .num_embeddings = kIdleRows,
               .embedding_dim = kIdleDim,
               .row_blocks = 2,
               .learning_rate_factor = 0.5},
              {0, {0, 2}, 0, 0}, FloatType::kFloat32, with, InitialValues::kDraw, 3, nullptr,
              scattered ? MakeRowStore([](RowStoreOptions o, ThreadPool* pool) {
                return std::make_unique<ScatteredRowStore>(std::move(o), pool);
              })
                        : nullptr) {}

  // The block of a row, and its rows among those given.
  size_t BlockOf(int32_t row) const { return row < shard.blocks[1].first_row ? 0 : 1; }
  template <class Visit>
  void ForEachBlockOf(const std::vector<int32_t>& rows, const Visit& visit) {
    for (size_t block = 0; block < 2; ++block) {
      std::vector<int32_t> of_block;
      for (const int32_t row : rows)
        if (BlockOf(row) == block) of_block.push_back(row);
      visit(block, of_block);
    }
  }
  void LookAt(const std::vector<int32_t>& rows) {
    ForEachBlockOf(rows, [&](size_t block, const std::vector<int32_t>& of_block) {
      CatchUpRows(of_block, block, &shard);
    });
  }
  void LookAtAll() {
    std::vector<int32_t> all(kIdleRows);
    std::iota(all.begin(), all.end(), 0);
    LookAt(all);
    shard.idle->Forget();
  }
  // `gradients` [rows, dim].
  void Step(const SparseStep& step, const std::vector<int32_t>& rows,
            const std::vector<float>& gradients) {
    LookAt(rows);
    shard.idle->Miss(IdleStepOf(options, step, shard));
    Apply(step, rows, gradients);
  }
  void Apply(const SparseStep& step, const std::vector<int32_t>& rows,
             const std::vector<float>& gradients) {
    const std::vector<uint16_t> virtual_worker(kIdleRows, 0);
    ForEachBlockOf(rows, [&](size_t block, const std::vector<int32_t>& of_block) {
      std::vector<Lookup> lookups;
      for (const int32_t row : of_block)
        lookups.push_back(MakeLookup(static_cast<uint32_t>(row), static_cast<uint32_t>(row)));
      std::vector<int32_t> scratch;
      const PinnedRows pinned(*shard.store, of_block, &scratch);
      EXPECT_TRUE(ApplySparse(
          options, step,
          {.lookups = lookups, .pooled = gradients.data(), .virtual_worker = virtual_worker.data()},
          nullptr, block, &shard));
    });
  }

  SparseOptimizerOptions options;
  EmbeddingShard shard;
};

void ExpectSameBits(EmbeddingShard& a, EmbeddingShard& b) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  EXPECT_TRUE(same(WeightsOf(*a.store), WeightsOf(*b.store)));
  EXPECT_TRUE(same(StateOf(*a.store), StateOf(*b.store)));
}

// Rates as a schedule, a plateau and clipping make them.
SparseStep StepWithRates(int64_t step) {
  const double rate = step < 40 ? 0.05 * static_cast<double>(step) / 40 : step < 900 ? 0.05 : 0.005;
  return {.learning_rate = step % 500 == 7 ? 0 : rate,
          .gradient_scale = step % 3 == 0 ? 0.25f : 1.0f,
          .step = step,
          .optimizer_step = 5 + step};
}

std::string Describe(const SparseOptimizerOptions& o) {
  return fmt::format("{}, decay {} {}, beta1 {}", InfoOf(o.type).name, o.weight_decay,
                     o.weight_decay_mode == WeightDecayMode::kL2 ? "L2" : "decoupled", o.beta1);
}

// All rows take every step at once, those that no sample looks up with a gradient of 0.
TEST(IdleRows, HaveTheBitsOfRowsThatTakeEveryStep) {
  constexpr int64_t kSteps = 1300;
  for (const SparseOptimizerOptions& options : AllThatMove()) {
    SCOPED_TRACE(Describe(options));
    IdleShard eager(options), lazy(options), looked_at(options, /*scattered=*/true);
    eager.shard.idle.reset();
    std::vector<int32_t> all(kIdleRows);
    std::iota(all.begin(), all.end(), 0);
    for (int64_t step = 0; step < kSteps; ++step) {
      const SparseStep with = StepWithRates(step);
      std::vector<float> gradients(static_cast<size_t>(kIdleRows * kIdleDim));
      std::vector<int32_t> rows, looks;
      for (int32_t row = 0; row < kIdleRows; ++row) {
        const Philox::Block words =
            Philox::Draw(static_cast<uint64_t>(step), static_cast<uint64_t>(row));
        if (words[0] % 11 == 0) looks.push_back(row);
        // Some rows in each step, some never, most of them seldom.
        if (row == 5 || words[1] % (row < 4 ? 2 : 400) != 0) continue;
        rows.push_back(row);
        for (int64_t d = 0; d < kIdleDim; ++d)
          gradients[static_cast<size_t>(row * kIdleDim + d)] =
              Philox::Uniform(Philox::Draw(words[2], static_cast<uint64_t>(d))[0]) - 0.5f;
      }
      eager.Apply(with, all, gradients);
      lazy.Step(with, rows, gradients);
      looked_at.Step(with, rows, gradients);
      looked_at.LookAt(looks);
      if (step % 333 == 0 || looked_at.shard.idle->steps() == IdleRows::kMostSteps) {
        looked_at.LookAtAll();
        ExpectSameBits(looked_at.shard, eager.shard);
      }
    }
    lazy.LookAtAll();
    ExpectSameBits(lazy.shard, eager.shard);
  }
}

// Values for which a shortcut could go wrong: zeros of both signs, the smallest and largest.
TEST(IdleRows, TakeManyStepsAtOnceWhateverTheirValues) {
  const std::vector<float> special = {0.0f,   -0.0f,  1e-45f,  -1e-45f, 1e-39f, -1e-38f, 1e-20f,
                                      -1e-9f, 1e-8f,  -3e-4f,  0.1f,    -1.0f,  1.0f,    77.0f,
                                      -1e10f, 1e-30f, 1.5e-3f, 1e15f,   2e-7f};
  for (const SparseOptimizerOptions& options : AllThatMove()) {
    SCOPED_TRACE(Describe(options));
    IdleShard at_once(options), one_by_one(options);
    for (IdleShard* each : {&at_once, &one_by_one}) {
      RowStore& store = *each->shard.store;
      const int64_t width = store.layout().state_width;
      std::vector<float> weights, states;
      for (int64_t i = 0; i < kIdleRows * kIdleDim; ++i)
        weights.push_back(special[static_cast<size_t>(i) % special.size()]);
      for (int64_t i = 0; i < kIdleRows * width; ++i) {
        // Every pair of values; squares are not negative.
        const float value = special[static_cast<size_t>(i / kIdleDim + i) % special.size()];
        const bool signs = options.type == SparseOptimizerType::kMomentum ||
                           (options.type == SparseOptimizerType::kAdam && i % width < kIdleDim);
        states.push_back(signs ? value : std::abs(value));
      }
      store.SetWeights(0, weights);
      if (width > 0) store.SetState(0, states);
      each->shard.idle->Restart();
    }
    for (int64_t step = 0; step < 1000; ++step) {
      for (IdleShard* each : {&at_once, &one_by_one})
        each->shard.idle->Miss(IdleStepOf(options, StepWithRates(step), each->shard));
      one_by_one.LookAtAll();
    }
    at_once.LookAtAll();
    ExpectSameBits(at_once.shard, one_by_one.shard);
  }
}

// Rows that no step changes are neither drawn nor marked as changed.
TEST(IdleRows, WithoutGradientsAndDecayStayAsTheyBegan) {
  IdleShard adam(AllRows(SparseOptimizerType::kAdam));
  IdleShard decayed(AllRows(SparseOptimizerType::kAdam, 0.1));
  const std::vector<float> gradients(static_cast<size_t>(kIdleRows * kIdleDim), 0.5f);
  for (int64_t step = 0; step < 3; ++step)
    for (IdleShard* each : {&adam, &decayed}) each->Step(StepWithRates(50 + step), {2}, gradients);
  for (IdleShard* each : {&adam, &decayed}) each->LookAtAll();
  const auto changed = [](const IdleShard& each) {
    return each.shard.blocks[0].dirty.size() + each.shard.blocks[1].dirty.size();
  };
  EXPECT_EQ(changed(adam), 1);
  EXPECT_EQ(changed(decayed), kIdleRows);
  // A row that was set may have states, and is looked at once more.
  adam.shard.idle->Restart();
  adam.Step(StepWithRates(60), {2}, gradients);
  EXPECT_TRUE(adam.shard.idle->IsBehind(7));
  adam.LookAtAll();
  EXPECT_FALSE(adam.shard.idle->IsBehind(7));
  EXPECT_EQ(changed(adam), 1);
}

TEST(IdleRowSteps, CountTheOperationsOfAStep) {
  using enum SparseOptimizerType;
  EXPECT_FALSE(IdleRowStepsOf(AllRows(kSgd)).move);
  EXPECT_FALSE(IdleRowStepsOf({.type = kAdam}).move);
  const IdleRowSteps adam = IdleRowStepsOf(AllRows(kAdam)), l2 = IdleRowStepsOf(AllRows(kAdam, 1));
  EXPECT_TRUE(adam.move && !adam.decays && l2.decays);
  // 12 multiplications and additions; a division and a root are as long as 20.
  EXPECT_EQ(adam.step_flops, 2 * (12 + 20));
  EXPECT_EQ(adam.fading_flops, 2 * (2 + 2));
  EXPECT_EQ(l2.step_flops, adam.step_flops + 2 * 2);
  EXPECT_EQ(l2.interval, 64);
  EXPECT_NEAR(std::pow(0.9, adam.steps_to_still), 0x1p-32, 1e-12);
  EXPECT_EQ(IdleRowStepsOf(AllRows(kSgd, 1, WeightDecayMode::kDecoupled)).step_flops, 2 * (2 + 1));
}

}  // namespace
}  // namespace renzan
