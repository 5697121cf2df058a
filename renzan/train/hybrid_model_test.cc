// The contract: the trained model's bits do not depend on workers and threads, for every model,
// optimizer, codec and kind of feature.

#include "renzan/train/hybrid_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/comm/testing.h"

namespace renzan {
namespace {

constexpr int64_t kDense = 3;

DatasetSchema Schema() {
  return {.label = "label",
          .dense = {"d0", "d1", "d2"},
          .categorical = {{"a", 7}, {"b", 1000}, {"m", 50, true}, {"n", 300, true}}};
}

// Samples [begin, end) of the global batch of a step.
Batch MakeSlice(const DatasetSchema& schema, int64_t step, int64_t begin, int64_t end) {
  Batch batch;
  batch.size = end - begin;
  batch.categorical.resize(schema.categorical.size());
  for (size_t t = 0; t < schema.categorical.size(); ++t)
    if (schema.categorical[t].multi_hot) batch.categorical[t].offsets.push_back(0);
  for (int64_t sample = begin; sample < end; ++sample) {
    const uint64_t s = static_cast<uint64_t>(sample);
    const Philox::Block words = Philox::Draw(static_cast<uint64_t>(step), s);
    batch.label.push_back(words[0] % 4 == 0 ? 1.0f : 0.0f);
    for (int64_t d = 0; d < kDense; ++d)
      batch.dense.push_back(Philox::Uniform(words[static_cast<size_t>(d + 1)]));
    for (size_t t = 0; t < schema.categorical.size(); ++t) {
      FeatureIds& ids = batch.categorical[t];
      const bool multi_hot = schema.categorical[t].multi_hot;
      const uint32_t length = multi_hot ? words[t] % 4 : 1;
      for (uint32_t i = 0; i < length; ++i) {
        const uint32_t word = Philox::Draw(words[1], i, t)[0];
        // Squaring makes low ids frequent.
        const double u = word * 0x1.0p-32;
        const double rows = static_cast<double>(schema.categorical[t].num_embeddings);
        ids.values.push_back(static_cast<int32_t>(u * u * rows));
      }
      if (multi_hot) ids.offsets.push_back(static_cast<int32_t>(ids.values.size()));
    }
  }
  return batch;
}

TrainConfig SmallConfig() {
  TrainConfig config;
  config.seed = 9;
  config.training.batch_size = 64;
  config.model.embedding_dim = 8;
  config.model.bottom_mlp = {12};
  config.model.top_mlp = {10, 6};
  config.model.cross_layers = 2;
  config.model.cross_rank = 4;
  config.model.tables["n"].pooling = "mean";
  config.numerics.virtual_workers = 8;
  return config;
}

// The digest of every parameter, row and optimizer state after a few steps.
std::string Digest(const TrainConfig& config, int world, int threads) {
  std::map<std::string, std::string> parts;
  std::mutex mutex;
  RunRanksAsThreads(world, [&](Communicator& comm) {
    ThreadPool pool(threads);
    const DatasetSchema schema = Schema();
    const std::vector<double> factors(schema.categorical.size(), 1.0);
    HybridModel model(config, schema, factors, comm, pool);
    std::vector<BinaryMetrics> metrics(static_cast<size_t>(threads));
    for (int64_t step = 0; step < 4; ++step)
      model.Step(MakeSlice(schema, step, model.slice_begin(), model.slice_end()), step, metrics);

    const auto digest = [](std::span<const float> values) {
      Sha256 hash;
      hash.Update(values.data(), values.size_bytes());
      return hash.HexDigest();
    };
    std::lock_guard lock(mutex);
    // The dense part must be the same on every rank, not only on one.
    std::string& dense = parts["dense"];
    std::string mine = digest(model.parameters().span());
    for (DenseOptimizer::State& state : model.dense_optimizer().states())
      mine += digest(state.values.span());
    if (dense.empty()) dense = mine;
    EXPECT_EQ(dense, mine) << "rank " << comm.rank();
    for (EmbeddingTable& table : model.embeddings().tables())
      parts[table.spec.name] = digest(table.weights.span()) + digest(table.state.span());
  });
  std::string all;
  for (const auto& [name, value] : parts) all += name + value;
  return Sha256Hex(all);
}

void ExpectPlacementChangesNothing(const TrainConfig& config) {
  const std::string expected = Digest(config, 1, 1);
  EXPECT_EQ(Digest(config, 1, 2), expected);
  for (int world : {2, 3, 4, 7})
    for (int threads : {1, 2})
      EXPECT_EQ(Digest(config, world, threads), expected)
          << world << " workers, " << threads << " threads";
}

struct Combination {
  std::string model, dense, sparse;
};

class Placement : public testing::TestWithParam<Combination> {};

TEST_P(Placement, NeverChangesArithmetic) {
  TrainConfig config = SmallConfig();
  config.model.type = GetParam().model;
  config.optimizer.dense.type = GetParam().dense;
  config.optimizer.dense.learning_rate = GetParam().dense == "sgd" ? 0.1 : 0.01;
  config.optimizer.sparse.type = GetParam().sparse;
  ExpectPlacementChangesNothing(config);
}

INSTANTIATE_TEST_SUITE_P(ModelsAndOptimizers, Placement,
                         testing::Values(Combination{"dlrm", "sgd", "sgd"},
                                         Combination{"dlrm", "adagrad", "adagrad"},
                                         Combination{"dlrm", "adam", "rowwise_adagrad"},
                                         Combination{"dlrm_dcnv2", "sgd", "rowwise_adagrad"},
                                         Combination{"dlrm_dcnv2", "adagrad", "adagrad"},
                                         Combination{"dlrm_dcnv2", "adam", "sgd"}));

TEST(Placement, NeverChangesArithmeticUnderAnyCodec) {
  for (const char* forward : {"fp32", "fp16", "bf16"}) {
    for (const char* backward : {"fp32", "fp16", "bf16"}) {
      TrainConfig config = SmallConfig();
      config.comm.forward = forward;
      config.comm.backward = backward;
      config.comm.dense = backward;
      ExpectPlacementChangesNothing(config);
    }
  }
}

TEST(Placement, DigestSeesADifferentSeed) {
  TrainConfig config = SmallConfig();
  const std::string first = Digest(config, 1, 1);
  config.seed = 10;
  EXPECT_NE(Digest(config, 1, 1), first);
}

TEST(HybridModel, NamesATableThatIsNotThere) {
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

}  // namespace
}  // namespace renzan
