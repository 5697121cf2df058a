// The trained model's bits do not depend on the numbers of workers and threads, for every model,
// optimizer, codec and feature type.

#include "renzan/step/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "renzan/base/sha256.h"
#include "renzan/comm/testing.h"
#include "renzan/dense/dense_gradients.h"
#include "renzan/embedding/testing.h"
#include "renzan/nn/isa.h"
#include "renzan/planning/make_plan.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

// The digest of every parameter, row and optimizer state after a few steps.
std::string Digest(const TrainConfig& config, int world, int threads, int64_t steps = 4,
                   const DatasetSchema& schema = TestSchema(),
                   const std::optional<Topology>& topology = {}) {
  std::map<std::string, std::string> parts;
  std::mutex mutex;
  RunRanksAsThreads(world, [&](Communicator& comm) {
    ThreadPool pool(threads);
    const ShardingPlan plan =
        PlanOf(TestSpec(config, schema), topology.value_or(Topology::OneHost(world)), threads);
    TestModel model(config, schema, comm, pool, InitialValues::kDraw, &plan);
    std::vector<OutputMetrics> metrics(static_cast<size_t>(threads));
    std::vector<Batch> slices;
    for (int64_t step = 0; step < steps; ++step) slices.push_back(MakeSlice(model, step, schema));
    // Some steps exchange the next step's ids.
    for (size_t i = 0; i < slices.size(); ++i)
      model.Run(slices[i], static_cast<int64_t>(i), metrics,
                i % 4 != 2 && i + 1 < slices.size() ? &slices[i + 1] : nullptr);

    std::map<std::string, std::string> mine = DigestsOf(model);
    mine["norm"] = fmt::format("{:a}", model.step().gradient_norm());
    std::lock_guard lock(mutex);
    for (const auto& [name, digest] : mine) {
      // The dense part must be the same on every rank, not only on one.
      EXPECT_EQ(parts.emplace(name, digest).first->second, digest) << "rank " << comm.rank();
    }
  });
  std::string all;
  for (const auto& [name, value] : parts) all += name + value;
  return Sha256Hex(all);
}

struct WorkersAndThreads {
  int workers, threads;
};

// kMany is for models and optimizers. Ranks that are threads of a busy machine wait for their turn
// at every exchange, so codecs and regularization are tested with kFew.
constexpr WorkersAndThreads kMany[] = {{1, 2}, {2, 1}, {2, 2}, {3, 1}, {3, 2},
                                       {4, 1}, {4, 2}, {7, 1}, {7, 2}};
constexpr WorkersAndThreads kFew[] = {{1, 2}, {3, 2}, {7, 1}};

void ExpectPlacementChangesNothing(const TrainConfig& config,
                                   std::span<const WorkersAndThreads> placements) {
  const std::string expected = Digest(config, 1, 1);
  for (const auto [workers, threads] : placements)
    EXPECT_EQ(Digest(config, workers, threads), expected)
        << workers << " workers, " << threads << " threads";
}

struct Combination {
  std::string model, dense, sparse, precision = "fp32", rows = "fp32";
};

class Placement : public testing::TestWithParam<Combination> {};

TEST_P(Placement, NeverChangesArithmetic) {
  TrainConfig config = SmallConfig();
  config.model.type = GetParam().model;
  config.optimizer.dense.type = GetParam().dense;
  config.optimizer.dense.learning_rate = GetParam().dense == "sgd" ? 0.1 : 0.01;
  config.optimizer.sparse.type = GetParam().sparse;
  config.numerics.precision = GetParam().precision;
  config.numerics.embedding_precision = GetParam().rows;
  ExpectPlacementChangesNothing(config, kMany);
}

INSTANTIATE_TEST_SUITE_P(
    ModelsAndOptimizers, Placement,
    testing::Values(Combination{"dlrm", "sgd", "sgd"}, Combination{"dlrm", "adagrad", "adagrad"},
                    Combination{"dlrm", "adam", "rowwise_adagrad"},
                    Combination{"dlrm", "adam", "rowwise_adagrad", "bf16", "bf16"},
                    Combination{"dlrm", "sgd", "adagrad", "fp32", "fp16"},
                    Combination{"dlrm_dcnv2", "sgd", "rowwise_adagrad"},
                    Combination{"dlrm_dcnv2", "adagrad", "adagrad"},
                    Combination{"dlrm", "adam", "adam"},
                    Combination{"dlrm", "adam", "adam", "fp32", "bf16"},
                    Combination{"dlrm", "sgd", "momentum", "fp32", "fp16"},
                    Combination{"dlrm_dcnv2", "adagrad", "ftrl"},
                    Combination{"dlrm_dcnv2", "adam", "sgd"},
                    Combination{"dlrm_dcnv2", "adagrad", "sgd", "bf16"}));

TEST(Placement, NeverChangesArithmeticUnderAnyCodec) {
  // The other tests use fp32 in all directions.
  for (const auto& [forward, backward, dense] :
       {std::array{"fp16", "bf16", "fp32"}, std::array{"bf16", "fp32", "fp16"},
        std::array{"fp32", "fp16", "bf16"}, std::array{"fp16", "fp16", "fp16"}}) {
    TrainConfig config = SmallConfig();
    config.comm.forward = forward;
    config.comm.backward = backward;
    config.comm.dense = dense;
    ExpectPlacementChangesNothing(config, kFew);
  }
}

// All shardings, pinned at random and mixed in one plan, on one and on several hosts.
TEST(Placement, NeverChangesArithmeticUnderAnyShardingPlan) {
  for (const char* sparse : {"sgd", "rowwise_adagrad", "adam"}) {
    TrainConfig config = SmallConfig();
    config.optimizer.sparse.type = sparse;
    config.numerics.row_blocks = 4;
    config.numerics.column_blocks = 2;
    config.model.tables["m"].row_blocks = 8;
    config.comm.forward = "fp16";
    config.optimizer.max_gradient_norm = 0.5;
    const std::string expected = Digest(config, 1, 1);
    uint64_t draws = 0;
    for (const int world : {1, 2, 3, 4, 5, 7})
      for (int plan = 0; plan < 4; ++plan) {
        std::string text;
        for (const char* table : {"a", "b", "m", "n"}) {
          std::string& sharding = config.sharding.tables[table];
          sharding = ShardingNames()[Philox::Draw(7, draws++)[0] % ShardingNames().size()];
          text += fmt::format(" {}: {}", table, sharding);
        }
        Topology topology{.hosts = {{0, (world + 1) / 2}}};
        if (world > 1) topology.hosts.push_back({(world + 1) / 2, world});
        EXPECT_EQ(Digest(config, world, 1 + plan % 2, 4, TestSchema(), topology), expected)
            << world << " workers," << text;
      }
  }
}

// Criteo's number of features, with tables from a few rows to tens of thousands. Each number of
// workers places the tables differently.
DatasetSchema LargeSchema() {
  DatasetSchema schema{.label = "label"};
  for (int d = 0; d < 13; ++d) schema.dense.push_back(fmt::format("d{}", d));
  for (int t = 0; t < 26; ++t)
    schema.categorical.push_back(
        {fmt::format("c{}", t), 3 + (t * t * t * 7919) % 60000, t % 9 == 4});
  return schema;
}

// Matrix products of realistic sizes take other paths through the kernels than tiny ones, and 2048
// samples give every thread several tasks.
TEST(Placement, NeverChangesArithmeticAtRealSizes) {
  const DatasetSchema schema = LargeSchema();
  std::vector<TableSpec> tables;
  for (const CategoricalFeature& feature : schema.categorical)
    tables.push_back({.num_embeddings = feature.num_embeddings, .embedding_dim = 16});
  const auto plan = [&](int world) {
    return MakePlan(tables, {}, Topology::OneHost(world),
                    std::vector<Sharding>(tables.size(), Sharding::kTableWise), "test");
  };
  for (const int world : {2, 3, 4}) EXPECT_NE(plan(world), plan(world + 1));
  for (const auto& [type, precision] :
       {std::pair{"dlrm", "fp32"}, {"dlrm", "bf16"}, {"dlrm_dcnv2", "fp32"}}) {
    TrainConfig config = SmallConfig();
    config.numerics.precision = precision;
    config.model = {};
    config.model.type = type;
    config.model.embedding_dim = 16;
    config.model.bottom_mlp = {512, 256, 64};
    config.model.top_mlp = {512, 512, 256};
    config.model.cross_layers = 2;
    config.model.cross_rank = 64;
    config.training.batch_size = 2048;
    config.optimizer.dense.type = "adam";
    config.optimizer.dense.learning_rate = 0.001;
    config.optimizer.sparse.type = "rowwise_adagrad";
    config.comm.backward = "fp16";
    const std::string expected = Digest(config, 1, 1, 2, schema);
    EXPECT_EQ(Digest(config, 1, 2, 2, schema), expected) << type << ", " << precision;
    for (const int world : {2, 3, 5})
      EXPECT_EQ(Digest(config, world, 1, 2, schema), expected)
          << type << ", " << precision << ", " << world << " workers";
  }
}

// Neither the width of vectors that fuse multiply and add nor the processor's support for products
// of bfloat16 matters: machines with AVX2 and with AVX-512 can share a run.
TEST(Placement, TheWidthOfVectorsNeverChangesArithmetic) {
  std::vector<std::string> classes;
  for (const char* isa : {"avx2", "avx512", "avx512_bf16"}) {
    try {
      classes.push_back(SelectIsa(isa));
    } catch (const Error&) {
    }
  }
  if (classes.size() < 2) GTEST_SKIP() << "this machine has at most one such class";
  for (const auto& [type, precision] : {std::pair{"dlrm", "fp32"},
                                        {"dlrm", "bf16"},
                                        {"dlrm_dcnv2", "fp32"},
                                        {"dlrm_dcnv2", "bf16"}}) {
    for (const int64_t dim : {8, 16, 20}) {
      TrainConfig config = SmallConfig();
      config.numerics.precision = precision;
      config.model.type = type;
      config.model.embedding_dim = dim;
      config.model.top_mlp = {100, 37};
      config.model.dropout = 0.2;
      config.optimizer.sparse.type = "rowwise_adagrad";
      config.comm.forward = dim == 20 ? "int8" : "bf16";
      config.comm.backward = dim == 20 ? "int4" : "bf16";
      config.numerics.embedding_precision = dim == 16 ? "fp32" : dim == 8 ? "fp16" : "bf16";
      SelectIsa(classes[0]);
      const std::string expected = Digest(config, 1, 1);
      for (const std::string& isa : classes) {
        SelectIsa(isa);
        EXPECT_EQ(Digest(config, 1, 1), expected)
            << type << ", " << precision << ", dimension " << dim << ", " << isa;
      }
      // Products of two bfloat16 are exact, fused or not, unless they are denormal.
      SelectIsa("sse4");
      if (config.numerics.precision == "fp32") {
        EXPECT_NE(Digest(config, 1, 1), expected) << "does not fuse";
      }
      SelectIsa("auto");
    }
  }
}

// AMX's order of additions, emulated on other machines. With few samples, gradients are computed
// for all virtual workers together.
TEST(Placement, NeverChangesArithmeticInTiles) {
  try {
    SelectIsa("amx");
  } catch (const Error&) {
    GTEST_SKIP() << "this machine cannot emulate AMX";
  }
  for (const auto& [type, batch_size] :
       {std::pair{"dlrm", 512}, {"dlrm", 2048}, {"dlrm_dcnv2", 512}, {"dlrm_dcnv2", 4096}}) {
    TrainConfig config = SmallConfig();
    config.model.type = type;
    config.model.top_mlp = {100, 37};
    config.training.batch_size = batch_size;  // short sums of products of bfloat16 are often exact
    config.numerics.precision = "bf16";
    const RunSpec spec = TestSpec(config);
    EXPECT_EQ(DenseGradients::Defers(MakeModel(spec.model)->layout(),
                                     DenseGradientOptionsOf(spec.numerics)),
              batch_size == 512);
    config.comm.backward = "bf16";
    ExpectPlacementChangesNothing(config, kFew);
    const std::string in_tiles = Digest(config, 1, 1);
    EmulateTileRegisters(true);
    EXPECT_EQ(Digest(config, 1, 1), in_tiles);
    EmulateTileRegisters(false);
    SelectIsa("avx2");
    EXPECT_NE(Digest(config, 1, 1), in_tiles);
    SelectIsa("amx");
  }
  SelectIsa("auto");
}

// Dropout, weight decay and gradient clipping together.
TrainConfig RegularizedConfig() {
  TrainConfig config = SmallConfig();
  config.model.dropout = 0.3;
  config.optimizer.dense.type = "adam";
  config.optimizer.dense.learning_rate = 0.01;
  config.optimizer.dense.weight_decay = 0.1;
  config.optimizer.sparse.type = "rowwise_adagrad";
  config.optimizer.sparse.weight_decay = 0.2;
  config.optimizer.max_gradient_norm = 0.01;
  return config;
}

TEST(Placement, NeverChangesArithmeticOfDropoutDecayAndClipping) {
  for (const char* model : {"dlrm", "dlrm_dcnv2"}) {
    for (const char* mode : {"decoupled", "l2"}) {
      TrainConfig config = RegularizedConfig();
      config.model.type = model;
      config.optimizer.sparse.weight_decay_mode = mode;
      config.comm.backward = config.comm.dense = std::string(mode) == "l2" ? "bf16" : "fp32";
      ExpectPlacementChangesNothing(config, kFew);
    }
  }
}

TEST(Placement, DigestDependsOnEveryRegularizationSetting) {
  const auto without = [](const std::function<void(TrainConfig&)>& change) {
    TrainConfig config = RegularizedConfig();
    change(config);
    return Digest(config, 1, 1);
  };
  const std::string all = without([](TrainConfig&) {});
  EXPECT_NE(without([](TrainConfig& c) { c.model.dropout = 0; }), all);
  EXPECT_NE(without([](TrainConfig& c) { c.optimizer.dense.weight_decay = 0; }), all);
  EXPECT_NE(without([](TrainConfig& c) { c.optimizer.sparse.weight_decay = 0; }), all);
  EXPECT_NE(without([](TrainConfig& c) { c.optimizer.sparse.weight_decay_mode = "l2"; }), all);
  EXPECT_NE(without([](TrainConfig& c) { c.optimizer.max_gradient_norm = 0; }), all);
  EXPECT_NE(without([](TrainConfig& c) { c.seed = 10; }), all);
}

TEST(Placement, NeverChangesArithmeticOfWeightsAndLosses) {
  TrainConfig config = SmallConfig();
  config.training.loss = {.pos_weight = 7.3, .label_smoothing = 0.1};
  config.optimizer.max_gradient_norm = 0.5;
  config.comm.backward = "fp16";
  const std::string expected = Digest(config, 1, 1, 4, WeightedSchema());
  for (const auto [workers, threads] : kFew)
    EXPECT_EQ(Digest(config, workers, threads, 4, WeightedSchema()), expected)
        << workers << " workers, " << threads << " threads";
  EXPECT_NE(Digest(config, 1, 1), expected);
  config.training.loss.pos_weight = 7.4;
  EXPECT_NE(Digest(config, 1, 1, 4, WeightedSchema()), expected);
  config.training.loss = {.pos_weight = 7.3, .label_smoothing = 0.2};
  EXPECT_NE(Digest(config, 1, 1, 4, WeightedSchema()), expected);
}

TEST(Placement, DigestDependsOnSeedAndPrecision) {
  TrainConfig config = SmallConfig();
  const std::string first = Digest(config, 1, 1);
  config.seed = 10;
  EXPECT_NE(Digest(config, 1, 1), first);
  config.seed = SmallConfig().seed;
  config.numerics.precision = "bf16";
  EXPECT_NE(Digest(config, 1, 1), first);
  config.numerics = SmallConfig().numerics;
  for (const char* rows : {"fp16", "bf16"}) {
    config.numerics.embedding_precision = rows;
    EXPECT_NE(Digest(config, 1, 1), first);
  }
}

// With SGD, an update divided by the learning rate is the gradient, so the expected norm and
// clipped step follow from an unclipped step.
TEST(Step, ClipsTheNormOfDenseAndEmbeddingGradientsTogether) {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    const auto values_after = [&](const TrainConfig& config, int64_t steps, double* norm) {
      TestModel model(config, TestSchema(), comm, pool);
      std::vector<OutputMetrics> metrics(1);
      for (int64_t step = 0; step < steps; ++step) model.Run(MakeSlice(model, step), step, metrics);
      std::vector<float> values(model.parameters().span().begin(), model.parameters().span().end());
      for (EmbeddingShard& shard : model.embeddings().shards()) {
        const std::vector<float> weights = WeightsOf(*shard.store);
        values.insert(values.end(), weights.begin(), weights.end());
      }
      *norm = model.step().gradient_norm();
      return values;
    };
    TrainConfig config = SmallConfig();
    config.optimizer.dense.learning_rate = config.optimizer.sparse.learning_rate = 8;
    double none = 0, norm = 0, short_enough = 0;
    const std::vector<float> start = values_after(config, 0, &none);
    const std::vector<float> plain = values_after(config, 1, &none);
    EXPECT_TRUE(std::isnan(none));
    double squared = 0;
    for (size_t i = 0; i < start.size(); ++i)
      squared += std::pow((double{start[i]} - double{plain[i]}) / 8, 2);
    const double expected = std::sqrt(squared);

    config.optimizer.max_gradient_norm = expected * 2;
    EXPECT_EQ(values_after(config, 1, &short_enough), plain);
    EXPECT_NEAR(short_enough, expected, 1e-5 * expected);

    config.optimizer.max_gradient_norm = expected / 4;
    const std::vector<float> clipped = values_after(config, 1, &norm);
    EXPECT_EQ(norm, short_enough);
    for (size_t i = 0; i < start.size(); ++i)
      ASSERT_NEAR(clipped[i], start[i] + (plain[i] - start[i]) / 4, 1e-5) << i;
  });
}

// Even between training steps whose next batch was announced, which predictions do not disturb, and
// wherever a sequence of predictions ends.
TEST(Step, PredictsTheSameWithTheNextSliceAhead) {
  RunRanksAsThreads(3, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(SmallConfig(), TestSchema(), comm, pool);
    TestModel without_predictions(SmallConfig(), TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(1);
    std::vector<Batch> slices;
    for (int64_t i = 0; i < 4; ++i) slices.push_back(MakeSlice(model, i));
    for (TestModel* each : {&model, &without_predictions})
      each->Run(slices[0], 0, metrics, &slices[1]);
    const size_t n = static_cast<size_t>(slices[0].size);
    std::vector<std::vector<float>> expected(3, std::vector<float>(n)), ahead = expected;
    for (size_t i = 0; i < 3; ++i) model.step().Predict(slices[i], expected[i]);
    PreparedBatches batches(model.embeddings());
    // The fourth is announced but not predicted.
    for (size_t i = 0; i < 3; ++i)
      model.step().Predict(slices[i], &slices[i + 1], &batches, ahead[i]);
    EXPECT_EQ(ahead, expected);
    const std::map<std::string, std::string> before = DigestsOf(model);
    for (TestModel* each : {&model, &without_predictions}) each->Run(slices[1], 1, metrics);
    EXPECT_NE(DigestsOf(model), before);
    EXPECT_EQ(DigestsOf(model), DigestsOf(without_predictions));
  });
}

TEST(Step, AppliesNoDropoutInEvaluation) {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    std::vector<std::vector<float>> logits;
    for (const double dropout : {0.0, 0.5}) {
      TrainConfig config = SmallConfig();
      config.model.dropout = dropout;
      config.training.max_steps = 0;
      config.optimizer.dense.learning_rate = config.optimizer.sparse.learning_rate = 0;
      TestModel model(config, TestSchema(), comm, pool);
      std::vector<OutputMetrics> metrics(1);
      model.Run(MakeSlice(model, 0), 0, metrics);
      logits.emplace_back(64);
      model.step().Predict(MakeSlice(model, 0), logits.back());
    }
    EXPECT_EQ(logits[0], logits[1]);
  });
}

TEST(Step, RejectsUnknownKeywords) {
  for (const auto& change : std::vector<std::function<void(TrainConfig&)>>{
           [](TrainConfig& c) { c.optimizer.sparse.type = "adamw"; },
           [](TrainConfig& c) { c.optimizer.dense.type = "adamw"; },
           [](TrainConfig& c) { c.optimizer.sparse.weight_decay_mode = "L2"; },
           [](TrainConfig& c) { c.model.pooling = "max"; },
           [](TrainConfig& c) { c.numerics.precision = "fp16"; },
           [](TrainConfig& c) { c.numerics.embedding_precision = "int8"; }}) {
    TrainConfig config = SmallConfig();
    change(config);
    try {
      Digest(config, 1, 1);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.what();
    }
  }
}

TEST(Step, NamesAMissingTable) {
  TrainConfig config = SmallConfig();
  config.model.tables["nn"].pooling = "sum";
  try {
    Digest(config, 1, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("did you mean 'n'"), std::string::npos)
        << error.what();
  }
}

// Announces the second slice, then trains on the one with this index.
void StepAfterAnnouncing(size_t index) {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(SmallConfig(), TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(1);
    std::vector<Batch> slices;
    for (int64_t i = 0; i < 3; ++i) slices.push_back(MakeSlice(model, i));
    model.Run(slices[0], 0, metrics, &slices[1]);
    model.Run(slices[index], 1, metrics);
  });
}

// The announced batch's ids have been exchanged: training on another batch would use them.
TEST(Step, TrainsOnTheBatchThatWasAnnounced) {
  StepAfterAnnouncing(1);
  EXPECT_EXIT(StepAfterAnnouncing(2), testing::ExitedWithCode(70),
              "this is not the batch that was announced");
}

}  // namespace
}  // namespace renzan
