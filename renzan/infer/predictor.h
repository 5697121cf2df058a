#pragma once

// Predicts consecutive batches on all workers: with a model that a single worker has whole
// (InferenceModel), or with one that is spread over workers or on a GPU (Step).

#include <cstdint>
#include <span>

#include "renzan/base/index_range.h"
#include "renzan/base/thread_pool.h"
#include "renzan/data/batch.h"
#include "renzan/data/known_ids.h"
#include "renzan/infer/inference_model.h"
#include "renzan/step/step.h"

namespace renzan {

class Predictor {
 public:
  // `known_ids`: of the model, for data whose vocabularies continue its own; null: the model knows
  // all ids.
  explicit Predictor(KnownIds* known_ids) : known_ids_(known_ids) {}
  virtual ~Predictor() = default;

  KnownIds* known_ids() const { return known_ids_; }

  // This worker's samples of every batch of `batch_size`.
  virtual int64_t slice_begin(int64_t batch_size) const = 0;
  virtual int64_t slice_end(int64_t batch_size) const = 0;
  // Whether a slice may be shorter at the end of the data; otherwise the caller pads it.
  virtual bool takes_short_slices() const = 0;
  // BatchLoaderOptions::readers.
  virtual int batch_readers() const = 0;

  virtual size_t num_outputs() const = 0;
  // Logits [outputs, slice.size]. `next`: the slice of the next call, or null; all workers give
  // one, or none does.
  virtual void Predict(const Batch& slice, const Batch* next, std::span<float> logits) = 0;
  // The same for the vectors [slice.size, width] of an output that is a match.
  virtual void PredictMatch(const Batch& slice, const Batch* next, const MatchVectors& vectors) = 0;

  virtual const Model& model() const = 0;
  virtual ThreadPool& pool() const = 0;

 private:
  KnownIds* const known_ids_;
};

class WholePredictor final : public Predictor {
 public:
  explicit WholePredictor(InferenceModel& model, KnownIds* known_ids = nullptr)
      : Predictor(known_ids), model_(model) {}

  int64_t slice_begin(int64_t) const override { return 0; }
  int64_t slice_end(int64_t batch_size) const override { return batch_size; }
  bool takes_short_slices() const override { return true; }
  int batch_readers() const override { return 1; }
  size_t num_outputs() const override { return model_.num_outputs(); }
  void Predict(const Batch& slice, const Batch*, std::span<float> logits) override {
    model_.Predict(slice, logits);
  }
  void PredictMatch(const Batch& slice, const Batch*, const MatchVectors& vectors) override {
    model_.PredictMatch(slice, vectors);
  }
  const Model& model() const override { return model_.model(); }
  ThreadPool& pool() const override { return model_.pool(); }

 private:
  InferenceModel& model_;
};

// Batches must have the size that the step was made for.
class StepPredictor final : public Predictor {
 public:
  explicit StepPredictor(Step& step, KnownIds* known_ids = nullptr)
      : Predictor(known_ids), step_(step), batches_(step.MakeBatches()) {}

  int64_t slice_begin(int64_t) const override { return step_.slice_begin(); }
  int64_t slice_end(int64_t) const override { return step_.slice_end(); }
  bool takes_short_slices() const override { return false; }
  int batch_readers() const override { return step_.batch_readers(); }
  size_t num_outputs() const override { return step_.spec().model.outputs.size(); }
  void Predict(const Batch& slice, const Batch* next, std::span<float> logits) override {
    step_.Predict(slice, next, &batches_, logits);
  }
  void PredictMatch(const Batch& slice, const Batch* next, const MatchVectors& vectors) override {
    step_.PredictMatch(slice, next, &batches_, vectors);
  }
  const Model& model() const override { return step_.model(); }
  ThreadPool& pool() const override { return step_.pool(); }

 private:
  Step& step_;
  PreparedBatches batches_;
};

}  // namespace renzan
