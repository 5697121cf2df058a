#pragma once

// A small model for tests, and training samples.

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/embedding/table_tensors.h"
#include "renzan/planning/make_plan.h"
#include "renzan/step/make_step.h"

namespace renzan {

inline DatasetSchema TestSchema() {
  return {.label = "label",
          .dense = {"d0", "d1", "d2"},
          .categorical = {{"a", 7}, {"b", 1000}, {"m", 50, true}, {"n", 300, true}}};
}

inline DatasetSchema WeightedSchema() {
  DatasetSchema schema = TestSchema();
  schema.weight = "w";
  return schema;
}

inline std::vector<double> TestPoolingFactors(const DatasetSchema& schema = TestSchema()) {
  return std::vector<double>(schema.categorical.size(), 1.0);
}

inline RunSpec TestSpec(const TrainConfig& config, const DatasetSchema& schema = TestSchema()) {
  return MakeRunSpec(config, schema, TestPoolingFactors(schema));
}

// As if each id occurred in the training data, the lower ones more often.
inline std::vector<IdCounts> TestCounts(const Model& model) {
  std::vector<IdCounts> all;
  for (const Model::Item& item : model.items()) {
    if (!item.popularity) continue;
    IdCounts& counts = all.emplace_back();
    for (int64_t id = 0; id < model.options().tables[item.table].num_ids; ++id) {
      counts.of_id.push_back(1 + 100 / (id + 1));
      counts.rows += counts.of_id.back();
    }
  }
  return all;
}

// A model and its step, as a run makes them.
class TestModel : public TrainedState {
 public:
  // `plan`: null for the configuration's plan, with all workers on one host.
  TestModel(const TrainConfig& config, const DatasetSchema& schema, Communicator& comm,
            ThreadPool& pool, InitialValues initial_values = InitialValues::kDraw,
            const ShardingPlan* plan = nullptr)
      : comm_(comm),
        spec_(TestSpec(config, schema)),
        state_(
            spec_,
            plan ? *plan : PlanOf(spec_, Topology::OneHost(comm.world_size()), pool.num_threads()),
            comm, pool, initial_values),
        step_(MakeStep(state_, comm, TestCounts(state_.model()))) {}

  Step& step() { return *step_; }
  // StepInput::metrics.
  std::vector<OutputMetrics> MakeMetrics() {
    return std::vector<OutputMetrics>(spec_.loss.tasks.size() *
                                      static_cast<size_t>(state_.pool().num_threads()));
  }
  // A step that knows nothing of earlier ones, as that of a resumed run.
  void MakeNewStep() {
    step_.reset();
    step_ = MakeStep(state_, comm_, TestCounts(state_.model()));
  }
  void Run(const Batch& slice, int64_t step, std::span<OutputMetrics> metrics,
           const Batch* next = nullptr, bool measure_gradients = false) {
    step_->Run({.slice = slice,
                .step = step,
                .metrics = metrics,
                .next = next,
                .measure_gradients = measure_gradients});
  }
  ModelState& Updated() override { return step_->Updated(); }
  const Finiteness& finiteness() const override { return step_->finiteness(); }

  AlignedBuffer& parameters() { return Updated().parameters(); }
  DenseOptimizer& dense_optimizer() { return Updated().dense_optimizer(); }
  ShardedEmbeddings& embeddings() { return Updated().embeddings(); }
  const Model& model() const { return state_.model(); }
  const RunSpec& spec() const { return spec_; }
  int64_t slice_begin() const { return state_.slice_begin(); }
  int64_t slice_end() const { return state_.slice_end(); }

 private:
  Communicator& comm_;
  RunSpec spec_;
  ModelState state_;
  std::unique_ptr<Step> step_;
};

// This worker's samples of a step's global batch.
inline Batch MakeSlice(const TestModel& model, int64_t step,
                       const DatasetSchema& schema = TestSchema()) {
  const int64_t begin = model.slice_begin(), end = model.slice_end();
  Batch batch;
  batch.size = end - begin;
  batch.categorical.resize(schema.categorical.size());
  for (size_t t = 0; t < schema.categorical.size(); ++t)
    if (schema.categorical[t].multi_hot) batch.categorical[t].offsets.push_back(0);
  for (int64_t sample = begin; sample < end; ++sample) {
    const uint64_t s = static_cast<uint64_t>(sample);
    const Philox::Block words = Philox::Draw(static_cast<uint64_t>(step), s);
    const bool is_missing = schema.label_optional && words[0] / 4 % 5 == 0;
    batch.label.push_back(is_missing          ? std::numeric_limits<float>::quiet_NaN()
                          : words[0] % 4 == 0 ? 1.0f
                                              : 0.0f);
    if (!schema.weight.empty()) batch.weight.push_back(2 * Philox::Uniform(words[3]));
    for (size_t d = 0; d < schema.dense.size(); ++d)
      batch.dense.push_back(Philox::Uniform(d < 3 ? words[d + 1] : Philox::Draw(words[1], d)[1]));
    for (size_t t = 0; t < schema.categorical.size(); ++t) {
      FeatureIds& ids = batch.categorical[t];
      const bool multi_hot = schema.categorical[t].multi_hot;
      const uint32_t length = multi_hot ? words[t % 4] % 4 : 1;
      for (uint32_t i = 0; i < length; ++i) {
        const uint32_t word = Philox::Draw(words[1], i, t)[0];
        // Squaring makes low ids frequent.
        const double u = word * 0x1.0p-32;
        const double rows = static_cast<double>(schema.categorical[t].num_embeddings);
        ids.values.push_back(static_cast<int64_t>(u * u * rows));
        // Some are 0, and some bags have no others.
        if (!schema.categorical[t].weights.empty())
          ids.weights.push_back(
              std::max(0.0f, 2 * Philox::Uniform(Philox::Draw(word, i)[1]) - 0.3f));
      }
      if (multi_hot) ids.offsets.push_back(static_cast<int32_t>(ids.values.size()));
    }
  }
  for (size_t j = 0; j < schema.further_labels.size(); ++j)
    for (int64_t sample = begin; sample < end; ++sample) {
      const uint32_t word =
          Philox::Draw(static_cast<uint64_t>(step), static_cast<uint64_t>(sample), 1 + j)[0];
      const bool is_missing = schema.further_labels[j].optional && word % 5 == 0;
      const bool is_number = schema.further_labels[j].is_number();
      const float label = is_number           ? static_cast<float>(word / 5 % 9) / 4 - 1
                          : word / 5 % 3 == 0 ? 1.0f
                                              : 0.0f;
      batch.label.push_back(is_missing ? std::numeric_limits<float>::quiet_NaN() : label);
    }
  const RunSpec& spec = model.spec();
  SampledNegatives(spec.seed, spec.negatives).Draw(step, begin, &batch);
  return batch;
}

inline TrainConfig SmallConfig() {
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
  // The planner would replicate such small tables.
  config.sharding.default_sharding = "table_wise";
  return config;
}

// SHA-256, by name, of the dense part and of each block of a table that this worker holds,
// including optimizer states.
inline std::map<std::string, std::string> DigestsOf(TestModel& model) {
  const auto digest_bytes = [](std::span<const std::byte> bytes) {
    Sha256 hash;
    hash.Update(bytes.data(), bytes.size());
    return hash.HexDigest();
  };
  const auto digest = [&](std::span<const float> values) {
    return digest_bytes(std::as_bytes(values));
  };
  const auto digest_rows = [&](RowStore& store, const EmbeddingShard::Block& block) {
    const int64_t n = block.num_rows;
    std::vector<std::byte> weights(static_cast<size_t>(n * store.layout().row_bytes()));
    std::vector<std::byte> state(static_cast<size_t>(n * store.layout().state_bytes()));
    store.CopyWeights(block.first_row, n, weights.data());
    store.CopyState(block.first_row, n, state.data());
    return digest_bytes(weights) + digest_bytes(state);
  };
  std::map<std::string, std::string> digests;
  std::string& dense = digests["dense"];
  dense = digest(model.parameters().span());
  for (DenseOptimizer::State& state : model.dense_optimizer().states())
    dense += digest(state.values.span());
  for (EmbeddingShard& shard : model.embeddings().shards())
    for (const EmbeddingShard::Block& block : shard.blocks)
      digests[KeyOf(shard, block).Key()] = digest_rows(*shard.store, block);
  return digests;
}

}  // namespace renzan
