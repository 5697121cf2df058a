#include "renzan/plan/cost_model.h"

#include <gtest/gtest.h>

#include "renzan/plan/replicated_gradients.h"

namespace renzan {
namespace {

const TableSpec kTable = {
    .name = "t", .num_embeddings = 1'000'000, .embedding_dim = 64, .row_blocks = 8};

RunCosts TestRun() {
  return {.batch = 8192,
          .virtual_workers = 8,
          .state_per_row = 1,
          .flops_per_sample = 1e6,
          .parameters = 1e5};
}

double StepOf(const ShardingPlan& plan, const Topology& topology, const RunCosts& run = TestRun()) {
  const std::vector<TableSpec> tables = {kTable};
  return EstimateStep(CostsOfPlan(plan, tables, run, topology), run, topology).total();
}

TEST(CostModel, ShardsOfATableAddUpToIt) {
  const Topology topology = Topology::OneHost(2);
  const ShardCost whole = CostOfShard({0, {0, 8}, 0, 0}, kTable, TestRun(), topology);
  ShardCost sum;
  for (int block = 0; block < 8; ++block) {
    const ShardCost part = CostOfShard({0, {block, block + 1}, 0, 0}, kTable, TestRun(), topology);
    sum.lookup_seconds += part.lookup_seconds;
    sum.table_bytes += part.table_bytes;
    sum.pooled_bytes += part.pooled_bytes;
  }
  EXPECT_NEAR(sum.lookup_seconds, whole.lookup_seconds, 1e-9 * whole.lookup_seconds);
  EXPECT_NEAR(sum.table_bytes, whole.table_bytes, 1);
  // One-hot: splitting it sends no more rows.
  EXPECT_NEAR(sum.pooled_bytes, whole.pooled_bytes, 1e-6 * whole.pooled_bytes);
  EXPECT_EQ(whole.table_bytes, 1e6 * (64 * 4 + 4 + 0.375));
  EXPECT_EQ(whole.pooled_bytes, 8192.0 * 64 * 4);
}

// Sums of a small table's gradients take the same bytes whatever the batch; a larger table sends
// the gradients of the samples.
TEST(CostModel, GradientsOfSmallReplicatedTablesAreReduced) {
  EXPECT_TRUE(ReducesGradients(2048, 64, RowCodec::kFloat32, 8192));
  EXPECT_FALSE(ReducesGradients(2049, 64, RowCodec::kFloat32, 8192));
  EXPECT_TRUE(ReducesGradients(1024, 64, RowCodec::kBFloat16, 8192));
  EXPECT_FALSE(ReducesGradients(1025, 64, RowCodec::kBFloat16, 8192));
  const Topology topology = Topology::OneHost(4);
  const auto cost = [&](int64_t rows, int rank) {
    const TableSpec table = {.name = "t", .num_embeddings = rows, .embedding_dim = 64};
    return CostOfShard({0, {0, 1}, 0, rank}, table, TestRun(), topology);
  };
  EXPECT_EQ(cost(100, kEveryRank).gradient_bytes, 2.0 * 100 * 64 * 4);
  EXPECT_EQ(cost(5000, kEveryRank).gradient_bytes, 8192.0 * 64 * 4);
  EXPECT_EQ(cost(100, 0).gradient_bytes, 8192.0 * 64 * 4);
  EXPECT_LT(cost(100, kEveryRank).receive_seconds, cost(5000, kEveryRank).receive_seconds);
}

TEST(CostModel, SplittingATableOfManyLookupsSendsMoreRows) {
  TableSpec table = kTable;
  table.pooling_factor = 20;
  const Topology topology = Topology::OneHost(2);
  const double whole = CostOfShard({0, {0, 8}, 0, 0}, table, TestRun(), topology).pooled_bytes;
  const double half = CostOfShard({0, {0, 4}, 0, 0}, table, TestRun(), topology).pooled_bytes;
  EXPECT_GT(2 * half, 1.9 * whole);
  EXPECT_LE(half, whole);
}

// Only the longer one counts, as in the step: pooled rows travel while parameters are packed, and
// dense gradients while tables are updated.
TEST(CostModel, WhatOverlapsCostsOnce) {
  const Topology topology = Topology::OneHost(2);
  std::vector<WorkerCost> workers(2);
  RunCosts run = TestRun();
  run.parameters = 1e7;
  const StepEstimate nothing = EstimateStep(workers, run, topology);
  const auto phases = [&](double pooled_bytes, double update_seconds) {
    for (WorkerCost& worker : workers) {
      worker.pooled_bytes = pooled_bytes;
      worker.update_seconds = update_seconds;
    }
    return EstimateStep(workers, run, topology);
  };
  EXPECT_EQ(phases(1e6, 0).output_dist, nothing.output_dist);
  EXPECT_GT(phases(1e9, 0).output_dist, nothing.output_dist);
  EXPECT_EQ(phases(0, 0.9 * nothing.update).update, nothing.update);
  EXPECT_EQ(phases(0, 2 * nothing.update).update, 2 * nothing.update);
}

TEST(CostModel, TimesOfWorkersAreTheirOwn) {
  const Topology topology = Topology::OneHost(3);
  std::vector<WorkerCost> workers(3);
  workers[0] = {.lookup_seconds = 1, .receive_seconds = 2, .update_seconds = 3};
  workers[1].pooled_bytes = 3 * topology.rates.intra_host_bytes;
  workers[1].gradient_bytes = 6 * topology.rates.intra_host_bytes;
  RunCosts run = TestRun();
  run.parameters = 0;
  const std::vector<WorkerTimes> times = TimesOfWorkers(workers, run, topology);
  EXPECT_EQ(times[0].lookup, 1);
  EXPECT_EQ(times[0].update, 3);
  EXPECT_EQ(times[1].lookup, 0);
  // It sends to two others; each of these receives half as much.
  EXPECT_NEAR(times[1].output_dist, 2, 1e-3);
  EXPECT_NEAR(times[2].output_dist, 1, 1e-3);
  EXPECT_NEAR(times[1].gradients, 4, 1e-3);
  EXPECT_NEAR(times[0].gradients, 2 + 2, 1e-3);
}

// Of two workers with half of the rows each, both have half of the work; of two with copies, all.
TEST(CostModel, RowsThatNoSampleLooksUpCostTheirOwners) {
  const Topology topology = Topology::OneHost(2);
  RunCosts run = TestRun();
  run.state_per_value = 2;
  run.batch = 64;  // of a million rows
  run.idle = {.move = true, .decays = true, .step_flops = 68, .interval = 64};
  const auto catch_up = [&](const ShardingPlan& plan) {
    const std::vector<TableSpec> tables = {kTable};
    std::vector<double> seconds;
    for (const WorkerCost& worker : CostsOfPlan(plan, tables, run, topology))
      seconds.push_back(worker.catch_up_seconds);
    return seconds;
  };
  const std::vector<double> copies = catch_up({{{0, {0, 8}, 0, kEveryRank}}});
  const double lookups = 64, bytes = 4 * 64 + 2 * 4 * 64 + 64;  // with the line of a state per row
  EXPECT_NEAR(copies[0],
              (1e6 - lookups) * 64 * 68 / topology.rates.matrix_flops +
                  1e6 / 64 * (2 * bytes + 16) / topology.rates.stream_bytes +
                  0.5 * lookups * 2 * bytes / topology.rates.row_bytes,
              1e-6 * copies[0]);
  EXPECT_EQ(copies[1], copies[0]);
  const std::vector<double> halves = catch_up({{{0, {0, 4}, 0, 0}, {0, {4, 8}, 0, 1}}});
  EXPECT_NEAR(halves[0], copies[0] / 2, 1e-6 * copies[0]);
  EXPECT_NEAR(halves[1], copies[0] / 2, 1e-6 * copies[0]);
  EXPECT_EQ(catch_up({{{0, {0, 8}, 0, 0}}})[1], 0);
  const double with = StepOf({{{0, {0, 8}, 0, 0}}}, topology, run);
  run.idle = {};
  EXPECT_NEAR(with - StepOf({{{0, {0, 8}, 0, 0}}}, topology, run), copies[0], 1e-6 * copies[0]);
}

// One worker exchanges nothing, but packs parameters and adds up their gradients.
TEST(CostModel, APhaseLastsAsLongAsItsSlowestWorker) {
  RunCosts run = TestRun();
  run.parameters = 1e7;
  for (const int n : {1, 2}) {
    const Topology topology = Topology::OneHost(n);
    std::vector<WorkerCost> workers(static_cast<size_t>(n));
    workers.back() = {.lookup_seconds = 1, .receive_seconds = 2, .update_seconds = 1e-9};
    workers.back().pooled_bytes = 1e5;
    const StepEstimate step = EstimateStep(workers, run, topology);
    EXPECT_GT(step.output_dist, 0);
    WorkerTimes slowest;
    for (const WorkerTimes& times : TimesOfWorkers(workers, run, topology)) {
      slowest.lookup = std::max(slowest.lookup, times.lookup);
      slowest.output_dist = std::max(slowest.output_dist, times.output_dist);
      slowest.gradients = std::max(slowest.gradients, times.gradients);
      slowest.update = std::max(slowest.update, times.update);
    }
    EXPECT_EQ(slowest.lookup, step.lookup) << n;
    EXPECT_EQ(slowest.output_dist, step.output_dist) << n;
    EXPECT_EQ(slowest.gradients, step.gradients) << n;
    EXPECT_EQ(slowest.update, step.update) << n;
  }
}

TEST(CostModel, RowWiseBalancesAndSlowNetworksCost) {
  const ShardingPlan whole = {{{0, {0, 8}, 0, 0}}};
  const ShardingPlan split = {{{0, {0, 4}, 0, 0}, {0, {4, 8}, 0, 1}}};
  const Topology one_host = Topology::OneHost(2);
  const Topology two_hosts{.hosts = {{0, 1}, {1, 2}}};
  EXPECT_LT(StepOf(split, one_host), StepOf(whole, one_host));
  EXPECT_LT(StepOf(whole, one_host), StepOf(whole, two_hosts));
  RunCosts half = TestRun();
  half.forward = half.backward = RowCodec::kFloat16;
  half.dense_wire_bytes = 2;
  EXPECT_LT(StepOf(whole, two_hosts, half), StepOf(whole, two_hosts));
}

TEST(CostModel, OneWorkerExchangesNothing) {
  const ShardingPlan whole = {{{0, {0, 8}, 0, 0}}};
  Topology slow = Topology::OneHost(1);
  slow.rates.intra_host_bytes = slow.rates.inter_host_bytes = 1;
  EXPECT_EQ(StepOf(whole, slow), StepOf(whole, Topology::OneHost(1)));
}

}  // namespace
}  // namespace renzan
