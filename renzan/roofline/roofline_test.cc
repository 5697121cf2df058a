#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/comm/backends.h"
#include "renzan/comm/testing.h"
#include "renzan/roofline/machine_limits.h"
#include "renzan/roofline/phase_times.h"
#include "renzan/roofline/step_costs.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

TEST(TimesOfSteps, AreThoseOfTheSpansDirectlyBelowTheSteps) {
  constexpr int64_t kMs = 1000000;
  Trace trace{.threads = {"main", "other"}, .events = {}};
  const auto add = [&](const char* name, int thread, int64_t begin, int64_t end) {
    trace.events.push_back({name, thread, begin * kMs, end * kMs});
  };
  for (const int64_t start : {0, 100, 200}) {
    const int64_t slow = start == 100 ? 7 : 0;
    add("inner", 0, start + 1, start + 3);
    add("lookup", 0, start + 1, start + 4);
    add("update", 0, start + 5, start + 8 + slow);
    if (start == 200) add("rare", 0, start + 9, start + 10);
    add("step", 0, start, start + 11 + slow);
    add("forward", 1, start + 2, start + 9);
    add("read", 0, start + 20, start + 30);
  }
  const StepTimes times = TimesOfSteps(trace);
  EXPECT_DOUBLE_EQ(times.step, 0.011);
  ASSERT_EQ(times.phases.size(), 4u);
  EXPECT_EQ(times.phases[0].name, "lookup");
  EXPECT_DOUBLE_EQ(times.phases[0].seconds, 0.003);
  EXPECT_EQ(times.phases[1].name, "update");
  EXPECT_DOUBLE_EQ(times.phases[1].seconds, 0.003);
  EXPECT_EQ(times.phases[2].name, "rare");
  EXPECT_DOUBLE_EQ(times.phases[2].seconds, 0);
  EXPECT_EQ(times.phases[3].name, "other");
  EXPECT_NEAR(times.phases[3].seconds, 0.005, 1e-12);
}

// In one step of two, inside another phase, and after the steps.
TEST(TimesOfSteps, CatchingUpCountsOnAverageAndByItself) {
  constexpr int64_t kMs = 1000000;
  Trace trace{.threads = {"main"}, .events = {}};
  const auto add = [&](const char* name, int64_t begin, int64_t end) {
    trace.events.push_back({name, 0, begin * kMs, end * kMs});
  };
  for (const int64_t start : {0, 100}) {
    const int64_t slow = start == 100 ? 20 : 0;
    add(kCatchUpSpan, start + 1, start + 2);
    add("lookup", start, start + 4);
    if (slow > 0) add(kCatchUpSpan, start + 6, start + 6 + slow);
    add("update", start + 5, start + 7 + slow);
    add("step", start, start + 8 + slow);
  }
  add(kCatchUpSpan, 200, 210);
  const StepTimes times = TimesOfSteps(trace);
  ASSERT_EQ(times.phases.size(), 4u);
  EXPECT_DOUBLE_EQ(times.phases[0].seconds, 0.003);
  EXPECT_DOUBLE_EQ(times.phases[1].seconds, 0.002);
  EXPECT_EQ(times.phases[2].name, kCatchUpSpan);
  EXPECT_DOUBLE_EQ(times.phases[2].seconds, (1 + 1 + 20 + 10) / 2 * 1e-3);
  EXPECT_NEAR(times.phases[3].seconds, 0.002, 1e-12);
  EXPECT_DOUBLE_EQ(times.step, 0.007 + 0.016);
}

TEST(TimesOfSteps, OfNothingIsNothing) {
  EXPECT_EQ(TimesOfSteps({}).step, 0);
  EXPECT_EQ(TimesOfSteps({}).phases.size(), 1u);
}

TEST(StepCosts, CountTheWorkOfAStep) {
  TrainConfig config;
  config.training.batch_size = 16;
  config.model.embedding_dim = 4;
  config.model.bottom_mlp = {5};
  config.model.top_mlp = {7};
  config.optimizer.sparse.type = "rowwise_adagrad";
  config.optimizer.dense.type = "adam";
  const DatasetSchema schema{
      .label = "y", .dense = {"a", "b", "c"}, .categorical = {{"t", 100}, {"u", 50}}};
  const auto comm = MakeLocalCommunicator();
  ThreadPool pool(1);
  TestModel model(config, schema, *comm, pool);

  // bottom 3-5-4; 3 vectors of 4, so 4 + 3 interactions; top 7-7-1.
  const double weights = 5 * 4 + 7 * 7 + 7, first = 3 * 5, pairs = 3;
  EXPECT_EQ(model.model().FlopsPerSample(), 6 * weights + 4 * first + 6 * pairs * 4);

  Batch batch;
  batch.size = 16;
  batch.categorical.resize(2);
  for (int32_t i = 0; i < 16; ++i) {
    batch.categorical[0].values.push_back(i % 4);
    batch.categorical[1].values.push_back(i);
  }
  const std::vector<PhaseCost> costs = CostsOfStep(model.Updated(), {&batch, 1});
  const auto of = [&](const std::string& phase) {
    for (const PhaseCost& cost : costs)
      if (cost.phase == phase) return cost;
    ADD_FAILURE() << phase;
    return PhaseCost{};
  };
  const double parameters = static_cast<double>(model.model().layout().size());
  EXPECT_EQ(of("forward and backward").flops, 16 * model.model().FlopsPerSample());
  // A single worker looks up for itself.
  EXPECT_EQ(of("forward and backward").row_bytes, 32 * 4 * 4);
  EXPECT_EQ(of("forward and backward").stream_bytes, 16 * 2 * 4 * 4 + 4 * 8 * 32);
  EXPECT_EQ(of("lookup").row_bytes, 0);
  EXPECT_EQ(of("lookup").stream_bytes, 0);
  EXPECT_EQ(of("sparse update").row_bytes, 2 * (4 + 16) * (4 + 1) * 4);
  EXPECT_EQ(of("reduce dense gradients").stream_bytes, 9 * 4 * parameters);
  EXPECT_EQ(of("dense update").stream_bytes, 7 * 4 * parameters);

  EXPECT_DOUBLE_EQ(LeastSeconds({.phase = "", .flops = 6, .stream_bytes = 8, .row_bytes = 10},
                                {.matrix_flops = 3, .stream_bytes = 2, .row_bytes = 10}),
                   2 + 4 + 1);
}

// Tables of 100 and 50 rows of 4 values, momentum, and batches that look up 4 and 16 of them.
TEST(StepCosts, CountTheStepsOfRowsThatNoSampleLooksUp) {
  TrainConfig config;
  config.training.batch_size = 16;
  config.model.embedding_dim = 4;
  config.model.bottom_mlp = {5};
  config.model.top_mlp = {7};
  config.numerics.virtual_workers = 1;
  config.optimizer.sparse = {.type = "momentum", .weight_decay = 0.1, .rows = "all"};
  const DatasetSchema schema{.label = "y", .dense = {"a"}, .categorical = {{"t", 100}, {"u", 50}}};
  const auto comm = MakeLocalCommunicator();
  ThreadPool pool(1);
  TestModel model(config, schema, *comm, pool);
  Batch batch;
  batch.size = 16;
  batch.categorical.resize(2);
  for (int32_t i = 0; i < 16; ++i) {
    batch.categorical[0].values.push_back(i % 4);
    batch.categorical[1].values.push_back(i);
  }
  const auto costs = CostsOfStep(model.Updated(), {&batch, 1}, {.rows = {100, 50}, .interval = 10});
  const auto of = [&](const std::string& phase) {
    return *std::ranges::find(costs, phase, &PhaseCost::phase);
  };
  // Four operations of momentum and one of decoupled decay, each as long as a multiply-add.
  EXPECT_DOUBLE_EQ(of("catch up").flops, (96 + 34) * 4 * 2 * 5);
  EXPECT_DOUBLE_EQ(of("catch up").stream_bytes, 150 / 10.0 * (2 * 2 * 4 * 4 + 16));
  EXPECT_DOUBLE_EQ(of("catch up").row_bytes, (4 * 0.96 + 16 * 0.68) * 2 * 2 * 4 * 4);
  // The lookups are sorted before the rows are read.
  EXPECT_EQ(of("lookup").stream_bytes, 4 * 8 * 32);
}

TEST(StepCosts, CoverEveryPhaseOfAStep) {
  TrainConfig config = SmallConfig();
  config.optimizer.max_gradient_norm = 1;
  config.optimizer.sparse.type = "adam";
  config.optimizer.sparse.rows = "all";
  const auto comm = MakeLocalCommunicator();
  ThreadPool pool(1);
  TestModel model(config, TestSchema(), *comm, pool);
  const Batch batch = MakeSlice(model, 0);
  std::vector<OutputMetrics> metrics(1);
  StartTrace();
  model.Run(batch, 0, metrics);
  const StepTimes times = TimesOfSteps(StopTrace());
  const std::vector<PhaseCost> costs =
      CostsOfStep(model.Updated(), {&batch, 1},
                  {.rows = std::vector<double>(model.Updated().embeddings().shards().size(), 1)});
  for (const PhaseTime& phase : times.phases) {
    if (phase.name == "other" || phase.name == "output_dist" || phase.name == "gradients to owners")
      continue;  // exchanges
    EXPECT_TRUE(std::any_of(costs.begin(), costs.end(), [&](const PhaseCost& cost) {
      return cost.phase == phase.name;
    })) << phase.name;
  }
}

TEST(MachineLimits, AreMeasuredWithAllThreads) {
  ThreadPool pool(2);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16})
    EXPECT_GT(MeasureMatrixFlops(pool, precision), 1e8);
  EXPECT_GT(MeasureStreamBytes(pool), 1e8);
  EXPECT_GT(MeasureRandomRowBytes(pool, 64, int64_t{1} << 24), 1e7);
  RunRanksAsThreads(2, [&](Communicator& comm) {
    const double seconds = MeasureAllToAllSeconds(comm, 1024);
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 10);
  });
}

}  // namespace
}  // namespace renzan
