#include "renzan/planning/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/planning/plan_file.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

PlanInput InputOf(int workers) {
  PlanInput input;
  input.config = SmallConfig();
  input.config.sharding.default_sharding = "table_wise";
  input.config.training.batch_size = 65536;
  input.schema = TestSchema();
  input.pooling_factors = TestPoolingFactors();
  input.topology = Topology::OneHost(workers);
  return input;
}

std::vector<std::string> ChangesOf(const std::vector<Advice>& advice) {
  std::vector<std::string> changes;
  for (const Advice& change : advice) changes.push_back(change.change);
  return changes;
}

// A network so slow that little else counts.
TEST(WhatWouldHelp, FewerBitsWhereTheNetworkLimits) {
  PlanInput input = InputOf(2);
  input.topology.rates.intra_host_bytes = 1e6;
  const PlannedRun now = PlanRun(input);
  ASSERT_TRUE(now.fits());
  const std::vector<Advice> advice = WhatWouldHelp(input, now);
  ASSERT_FALSE(advice.empty());
  EXPECT_THAT(ChangesOf(advice), testing::IsSupersetOf({"comm.forward: int8, comm.backward: int8",
                                                        "comm.forward: fp16, comm.backward: bf16",
                                                        "sharding: {default: auto}"}));
  for (const Advice& change : advice) EXPECT_LT(change.step_seconds, 0.95 * now.step.total());
  EXPECT_TRUE(std::is_sorted(advice.begin(), advice.end(), [](const Advice& a, const Advice& b) {
    return a.step_seconds < b.step_seconds;
  }));
  // Nobody is told to do what is already done.
  input.config.comm.forward = input.config.comm.backward = "int8";
  for (const Advice& change : WhatWouldHelp(input, PlanRun(input)))
    EXPECT_THAT(change.change, testing::Not(testing::HasSubstr("comm.forward")));
}

TEST(WhatWouldHelp, NothingThatRowsCannotHaveWhereAllMove) {
  PlanInput input = InputOf(1);
  input.config.optimizer.sparse.type = "adagrad";
  input.config.model.embedding_dim = 64;
  input.topology.rates.row_bytes = 1e3;
  const auto refused = testing::AnyOf(testing::HasSubstr("embedding_precision"),
                                      testing::HasSubstr("optimizer.sparse"));
  EXPECT_THAT(ChangesOf(WhatWouldHelp(input, PlanRun(input))), testing::Contains(refused));
  input.config.optimizer.sparse.rows = "all";
  input.config.optimizer.sparse.weight_decay = 0.1;
  EXPECT_THAT(ChangesOf(WhatWouldHelp(input, PlanRun(input))),
              testing::Not(testing::Contains(refused)));
}

// On every worker.
TEST(PlanRun, CountsTheMemoryOfRankedItems) {
  PlanInput input = InputOf(2);
  input.config.data.eval.path = "data";
  const PlannedRun without = PlanRun(input);
  input.ranking = {.outputs = {{.candidates = 1000, .width = 64, .rows = 5}}, .bytes = 1 << 30};
  EXPECT_EQ(input.ranking->outputs[0].flops_per_row(), 128000);
  const PlannedRun with = PlanRun(input);
  for (size_t worker : {0, 1})
    EXPECT_EQ(with.memory_bytes(worker), without.memory_bytes(worker) + (1 << 30));
  input.topology.rates.memory_bytes = without.most_memory_bytes() + (1 << 29);
  EXPECT_FALSE(PlanRun(input).fits());
}

// Rows that take steps though no sample looks them up.
TEST(PlanRun, HasAPhaseForRowsThatCatchUp) {
  PlanInput input = InputOf(1);
  input.config.training.batch_size = 8;  // which look up few rows
  input.config.optimizer.sparse.type = "adam";
  const auto phase = [](const PlannedRun& planned) {
    double seconds = 0;
    for (const NamedPhase& each : PhasesOf(planned.step))
      if (each.name == std::string("catch up")) seconds = each.seconds;
    return seconds;
  };
  const PlannedRun touched = PlanRun(input);
  EXPECT_EQ(phase(touched), 0);
  EXPECT_EQ(PhasesOf(touched.step).size(), 7u);
  input.config.optimizer.sparse.rows = "all";
  const PlannedRun all = PlanRun(input);
  EXPECT_GT(phase(all), 0);
  EXPECT_DOUBLE_EQ(all.step.total(), touched.step.total() + phase(all));
  EXPECT_GT(all.most_memory_bytes(), touched.most_memory_bytes());
  input.config.optimizer.sparse.weight_decay = 0.1;
  EXPECT_GT(phase(PlanRun(input)), phase(all));
  for (const CategoricalFeature& feature : input.schema.categorical)
    input.config.model.tables[feature.name].frozen = true;
  EXPECT_EQ(phase(PlanRun(input)), 0);
}

TEST(WhatWouldHelp, NoMoreBitsThanNow) {
  PlanInput input = InputOf(2);
  input.topology.rates.intra_host_bytes = 1e6;
  input.config.comm.forward = "int4";
  const std::vector<std::string> changes = ChangesOf(WhatWouldHelp(input, PlanRun(input)));
  EXPECT_THAT(changes, testing::Contains("comm.forward: int4, comm.backward: int8"));
  EXPECT_THAT(changes, testing::Not(testing::Contains(testing::HasSubstr("comm.forward: int8"))));
}

// What leaving out the plan file gains is not credited to another change alone.
TEST(WhatWouldHelp, EveryChangeBesideAPlanFileSaysThatThePlanIsLeftOut) {
  TemporaryDirectory dir;
  PlanInput input = InputOf(2);
  const RunSpec spec = MakeRunSpec(input.config, input.schema, input.pooling_factors);
  WriteFileAtomically(dir / "plan.yaml",
                      PrintPlan(PlanOf(spec, input.topology, 1), spec.tables, 2));
  input.config.sharding = {.plan = dir / "plan.yaml"};
  input.topology.rates.intra_host_bytes = 1e6;
  const std::vector<Advice> advice = WhatWouldHelp(input, PlanRun(input));
  ASSERT_FALSE(advice.empty());
  for (const Advice& change : advice)
    EXPECT_THAT(change.change, testing::EndsWith("sharding: {default: auto}"));
}

TEST(WhatWouldHelp, MoreWorkersOrMemoryWhereItDoesNotFit) {
  PlanInput input = InputOf(2);
  PlannedRun now = PlanRun(input);
  input.topology.rates.memory_bytes = 0.97 * now.most_memory_bytes();
  now = PlanRun(input);
  ASSERT_FALSE(now.fits());
  const std::vector<Advice> advice = WhatWouldHelp(input, now);
  EXPECT_THAT(ChangesOf(advice), testing::Contains("4 workers on 2 such machines"));
  EXPECT_THAT(ChangesOf(advice), testing::Contains(testing::HasSubstr("GiB per worker")));
  EXPECT_TRUE(std::any_of(advice.begin(), advice.end(), [](const Advice& a) { return a.fits; }));
  for (const Advice& change : advice)
    EXPECT_TRUE(change.fits || change.most_memory_bytes < 0.95 * now.most_memory_bytes());
}

// The predicted costs are those of a plan for the changed configuration.
TEST(WhatWouldHelp, EveryChangeWasPlanned) {
  PlanInput input = InputOf(2);
  input.topology.rates.intra_host_bytes = 1e6;
  const std::vector<Advice> advice = WhatWouldHelp(input, PlanRun(input));
  const auto int8 = std::find_if(advice.begin(), advice.end(), [](const Advice& change) {
    return change.change == "comm.forward: int8, comm.backward: int8";
  });
  ASSERT_NE(int8, advice.end());
  input.config.comm.forward = input.config.comm.backward = "int8";
  EXPECT_EQ(PlanRun(input).step.total(), int8->step_seconds);
}

// A table of a few GiB. A GPU's memory is unknown unless the topology gives it.
PlanInput InputWithGpu(int workers) {
  PlanInput input = InputOf(workers);
  input.config.device = "cuda";
  input.schema.categorical[1].num_embeddings = 100'000'000;
  input.topology.rates.memory_bytes = 0x1p40;
  return input;
}

TEST(PlanOfGpus, TablesAreInTheirMemoryWhereTheyCanBe) {
  const double table_bytes = 100e6 * 8 * sizeof(float);
  EXPECT_FALSE(PlanRun(InputOf(1)).gpu.has_value());
  PlanInput input = InputWithGpu(1);
  const PlannedRun unknown = PlanRun(input);
  EXPECT_EQ(unknown.gpu->why_not_tables, "");
  EXPECT_GT(static_cast<double>(unknown.gpu->bytes), table_bytes);

  input.topology.rates.gpu_memory_bytes = static_cast<double>(unknown.gpu->bytes);
  PlannedRun planned = PlanRun(input);
  EXPECT_TRUE(planned.gpu->has_tables() && planned.fits());
  input.topology.rates.gpu_memory_bytes -= 1;
  planned = PlanRun(input);
  EXPECT_THAT(planned.gpu->why_not_tables,
              testing::MatchesRegex("they need 3[0-9]+ MiB, and [0-9]+ MiB are free"));
  EXPECT_LT(static_cast<double>(planned.gpu->bytes), table_bytes);
  EXPECT_TRUE(planned.fits());

  input = InputWithGpu(2);
  EXPECT_EQ(PlanRun(input).gpu->why_not_tables, "there are several workers");
  input = InputWithGpu(1);
  input.config.comm.dense = "bf16";
  EXPECT_EQ(PlanRun(input).gpu->why_not_tables, "comm has a codec that rounds");
}

TEST(PlanOfGpus, ModelsThatNoGpuCanComputeAreErrors) {
  const auto error_of = [](auto change) -> std::string {
    PlanInput input = InputWithGpu(2);
    change(input.config.model);
    try {
      PlanRun(input);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of([](ModelConfig& model) { model.embedding_dim = 12; }),
            "device: cuda does not support model.embedding_dim: 12, which is not a multiple of 8: "
            "use device: cpu");
  const auto wide = [](ModelConfig& model) { model.tables["b"].embedding_dim = 16; };
  EXPECT_EQ(error_of([&](ModelConfig& model) {
              model.type = "dlrm";
              wide(model);
            }),
            "device: cuda does not support model.tables.b.embedding_dim: 16 beside others of 8 in "
            "model.type: dlrm: use device: cpu");
  EXPECT_EQ(error_of([&](ModelConfig& model) {
              model.type = "dlrm_dcnv2";
              wide(model);
            }),
            "");
}

TEST(PlanOfGpus, BlocksWithoutKernelsAreNamed) {
  const auto error_of = [](const std::string& type, const Graph& graph = {}) -> std::string {
    PlanInput input = InputWithGpu(1);
    ModelConfig& model = input.config.model;
    model.type = type;
    model.blocks = BlocksOf(graph);
    try {
      PlanRun(input);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of("deepfm"),
            "device: cuda has no kernels for the blocks factors, first_order, fm and logit (sum) "
            "(of model.type: deepfm), and runs only model.type: dlrm and dlrm_dcnv2: use one of "
            "them, or device: cpu");
  EXPECT_EQ(error_of("dcnv2"),
            "device: cuda runs no graph of blocks but those of model.type: dlrm and dlrm_dcnv2, by "
            "these names; model.type is dcnv2: use one of them, or device: cpu");
  const PlanInput input = InputWithGpu(1);
  for (const char* type : {"dlrm", "dlrm_dcnv2"}) {
    TrainConfig config = input.config;
    config.model.type = type;
    EXPECT_EQ(error_of(type), "");
    EXPECT_EQ(error_of(kBlocksType, GraphOf(ModelOptionsOf(config, input.schema))),
              "device: cuda runs no graph of blocks but those of model.type: dlrm and dlrm_dcnv2, "
              "by these names; model.type is blocks: use one of them, or device: cpu");
  }
}

TEST(PlanOfGpus, WhatWouldHelpWhereTheirMemoryDoesNotSuffice) {
  PlanInput input = InputWithGpu(1);
  input.config.training.batch_size = 1 << 22;
  input.config.model.top_mlp = {1024, 1024};
  input.topology.rates.gpu_memory_bytes = 0x1p40;
  PlannedRun now = PlanRun(input);
  ASSERT_TRUE(now.fits());
  input.topology.rates.gpu_memory_bytes = 0.3 * static_cast<double>(now.gpu->bytes);
  now = PlanRun(input);
  EXPECT_FALSE(now.fits_gpu());
  EXPECT_TRUE(now.fits_host());
  ASSERT_FALSE(now.fits());
  const std::vector<Advice> advice = WhatWouldHelp(input, now);
  EXPECT_THAT(ChangesOf(advice), testing::Contains("numerics.precision: bf16"));
  EXPECT_THAT(ChangesOf(advice), testing::Contains(testing::HasSubstr(" workers")));
  EXPECT_THAT(ChangesOf(advice), testing::Not(testing::Contains(testing::HasSubstr("GiB per"))));
  EXPECT_TRUE(std::any_of(advice.begin(), advice.end(), [](const Advice& a) { return a.fits; }));
}

}  // namespace
}  // namespace renzan
