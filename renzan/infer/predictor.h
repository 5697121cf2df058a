#pragma once

// What computes the predictions of consecutive batches on all workers: a model that one worker has
// whole (InferenceModel), or one that is spread over workers or lies on a GPU (Step).

#include <cstdint>
#include <span>

#include "renzan/base/index_range.h"
#include "renzan/data/batch.h"
#include "renzan/infer/inference_model.h"
#include "renzan/step/step.h"

namespace renzan {

class Predictor {
 public:
  virtual ~Predictor() = default;

  // This worker's samples of every batch of so many.
  virtual int64_t slice_begin(int64_t batch_size) const = 0;
  virtual int64_t slice_end(int64_t batch_size) const = 0;
  // Whether a slice may be shorter, as at the end of the data; else it is padded.
  virtual bool takes_short_slices() const = 0;
  // BatchLoaderOptions::readers.
  virtual int batch_readers() const = 0;

  // Logits [slice.size]. `next`, on all workers or on none: the slice of the next call.
  virtual void Predict(const Batch& slice, const Batch* next, std::span<float> logits) = 0;
};

class WholePredictor final : public Predictor {
 public:
  explicit WholePredictor(InferenceModel& model) : model_(model) {}

  int64_t slice_begin(int64_t) const override { return 0; }
  int64_t slice_end(int64_t batch_size) const override { return batch_size; }
  bool takes_short_slices() const override { return true; }
  int batch_readers() const override { return 1; }
  void Predict(const Batch& slice, const Batch*, std::span<float> logits) override {
    model_.Predict(slice, logits);
  }

 private:
  InferenceModel& model_;
};

// Batches have the size that the step was made for.
class StepPredictor final : public Predictor {
 public:
  explicit StepPredictor(Step& step) : step_(step), batches_(step.MakeBatches()) {}

  int64_t slice_begin(int64_t) const override { return step_.slice_begin(); }
  int64_t slice_end(int64_t) const override { return step_.slice_end(); }
  bool takes_short_slices() const override { return false; }
  int batch_readers() const override { return step_.batch_readers(); }
  void Predict(const Batch& slice, const Batch* next, std::span<float> logits) override {
    step_.Predict(slice, next, &batches_, logits);
  }

 private:
  Step& step_;
  PreparedBatches batches_;
};

}  // namespace renzan
