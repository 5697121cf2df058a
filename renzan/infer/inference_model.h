#pragma once

// A trained model for predictions, whole in this process: dense parameters and tables, without
// optimizer states and without a communicator. It takes batches of any size: a logit has the same
// bits in any batch and on any number of threads, and the same as from Step::Predict.
//
// Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/function_ref.h"
#include "renzan/base/thread_pool.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/data/batch.h"
#include "renzan/embedding/whole_tables.h"
#include "renzan/model/model.h"
#include "renzan/run_spec/feature_lookups.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

struct InferenceOptions {
  ModelOptions model;
  WholeTablesOptions tables;
  std::vector<size_t> features;  // RunSpec::features
};
InferenceOptions InferenceOptionsOf(const RunSpec& spec);

class InferenceModel {
 public:
  // Allocates the memory; call Load() next. The pool must outlive it.
  InferenceModel(const InferenceOptions& options, ThreadPool& pool);

  // Throws kData when a tensor is missing, has another shape or is corrupt.
  void Load(CheckpointReader& reader);

  size_t num_outputs() const { return model_->num_outputs(); }

  // Logits [outputs, batch.size]. The ids must be rows of the tables.
  void Predict(const Batch& batch, std::span<float> logits);
  // The vectors [batch.size, width] of an output that is a match.
  void PredictMatch(const Batch& batch, const MatchVectors& vectors);

  const Model& model() const { return *model_; }

  ThreadPool& pool() { return pool_; }

 private:
  // On all threads, for parts of the batch: calls read(their first sample, how many there are,
  // their workspace).
  void Forward(const Batch& batch,
               FunctionRef<void(int64_t first, int64_t n, const Model::Workspace& workspace)> read);
  const Model::Workspace& ForwardPart(const Batch& batch, int64_t first, int64_t n, int thread);
  // For at least n samples. Each thread has its own.
  Model::Workspace& WorkspaceFor(int64_t n, int thread);

  ThreadPool& pool_;
  std::unique_ptr<Model> model_;
  AlignedBuffer parameters_;
  PackedParameters packed_;
  WholeTables tables_;
  FeatureLookups lookups_;
  std::vector<IdsView> ids_;  // of the batch
  IdsByTable by_table_;
  // By thread, then by number of samples.
  std::vector<std::map<int64_t, std::unique_ptr<Model::Workspace>>> workspaces_;
};

}  // namespace renzan
