#include "renzan/infer/inference_model.h"

#include <gtest/gtest.h>

#include "renzan/base/file/file.h"
#include "renzan/base/random_testing.h"
#include "renzan/embedding/scattered_row_store_for_test.h"
#include "renzan/saving/testing.h"
#include "renzan/step/random_models_for_test.h"

namespace renzan {
namespace {

// Samples [first, first + n) of a batch.
Batch PartOf(const Batch& batch, const DatasetSchema& schema, size_t first, size_t n) {
  Batch part;
  part.size = static_cast<int64_t>(n);
  const size_t num_dense = schema.dense.size();
  const auto dense = batch.dense.begin() + static_cast<int64_t>(first * num_dense);
  part.dense.assign(dense, dense + static_cast<int64_t>(n * num_dense));
  for (const FeatureIds& all : batch.categorical) {
    FeatureIds& ids = part.categorical.emplace_back();
    size_t begin = first, end = first + n;
    if (!all.offsets.empty()) {
      for (size_t i = first; i <= first + n; ++i)
        ids.offsets.push_back(all.offsets[i] - all.offsets[first]);
      begin = static_cast<size_t>(all.offsets[first]);
      end = static_cast<size_t>(all.offsets[first + n]);
    }
    ids.values.assign(all.values.begin() + static_cast<int64_t>(begin),
                      all.values.begin() + static_cast<int64_t>(end));
    if (!all.weights.empty())
      ids.weights.assign(all.weights.begin() + static_cast<int64_t>(begin),
                         all.weights.begin() + static_cast<int64_t>(end));
  }
  return part;
}

// Trains the model for two steps, saves it, and returns the logits that Step::Predict computes for
// a whole batch.
std::vector<float> TrainAndSave(const RandomModel& model, const std::string& path, Batch* batch) {
  TemporaryDirectory dir;
  std::vector<float> logits;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, model.config, dir.path(), SystemClock(), {.schema = model.schema});
    trainer.TrainTo(2);
    trainer.checkpointer->SaveModel(path, trainer.step);
    *batch = MakeSlice(trainer.model, 7, model.schema);
    logits.resize(trainer.model.model().num_outputs() * static_cast<size_t>(batch->size));
    trainer.model.step().Predict(*batch, logits);
  });
  return logits;
}

// RENZAN_TEST_SEEDS=FIRST..LAST (or one seed) draws other models.
TEST(InferenceModel, HasTheLogitsOfTrainingInBatchesOfAnySize) {
  const auto [first_seed, last_seed] = TestSeeds(25);
  for (uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    SCOPED_TRACE(seed);
    const RandomModel model = DrawModel(seed);
    TemporaryDirectory dir;
    Batch batch;
    const std::vector<float> expected = TrainAndSave(model, dir / "model", &batch);
    for (const bool scattered : {false, true}) {
      InferenceOptions options = InferenceOptionsOf(TestSpec(model.config, model.schema));
      if (scattered)
        options.tables.make_store = [](RowStoreOptions rows, ThreadPool* pool) {
          return std::make_unique<ScatteredRowStore>(std::move(rows), pool);
        };
      ThreadPool pool(scattered ? 1 : 3);
      InferenceModel inference(options, pool);
      CheckpointReader reader(dir / "model");
      inference.Load(reader);
      const size_t size = static_cast<size_t>(batch.size);
      for (const size_t piece : {size, size_t{1}, size_t{3}, size_t{64}}) {
        std::vector<float> logits(expected.size());
        for (size_t first = 0; first < size; first += piece) {
          const size_t n = std::min(piece, size - first);
          std::vector<float> part(inference.num_outputs() * n);
          inference.Predict(PartOf(batch, model.schema, first, n), part);
          for (size_t output = 0; output < inference.num_outputs(); ++output)
            std::copy_n(part.data() + output * n, n, logits.data() + output * size + first);
        }
        ASSERT_EQ(logits, expected) << piece << " samples at a time, scattered rows: " << scattered;
      }
    }
  }
}

TEST(InferenceModel, PredictsNothingForAnEmptyBatch) {
  ThreadPool pool(2);
  InferenceModel inference(InferenceOptionsOf(TestSpec(TrainConfig(), TestSchema())), pool);
  Batch batch;
  batch.categorical.resize(TestSchema().categorical.size());
  inference.Predict(batch, {});
}

}  // namespace
}  // namespace renzan
