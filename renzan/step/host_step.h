#pragma once

// A step whose tables are in this process's memory. Exchanges with other workers are the same for
// CpuStep and GpuDenseStep, which differ in where they compute the dense part.

#include <memory>
#include <vector>

#include "renzan/dense/dense_gradients.h"
#include "renzan/dense/running_statistics.h"
#include "renzan/step/stages.h"
#include "renzan/step/step.h"

namespace renzan {

class HostStep : public Step {
 public:
  void Run(const StepInput& input) final;
  void Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
               std::span<float> logits) final;
  void PredictMatch(const Batch& slice, const Batch* next, PreparedBatches* batches,
                    const MatchVectors& vectors) final;
  using Step::Predict;
  ModelState& Updated() override;

 protected:
  HostStep(ModelState& state, Communicator& comm);

  // Prepares the parameters for a forward pass.
  virtual void Pack() = 0;
  // Adds predictions to `input.metrics`, leaves dense gradients in dense_gradients_ and the
  // gradients of pooled rows in the embeddings. Also sorts the lookups
  // (ShardedEmbeddings::SortLookups).
  virtual BackwardResult ForwardAndBackward(const StepInput& input, const PooledRows& pooled) = 0;
  // Writes logits [outputs, slice size].
  virtual void Forward(const Batch& slice, const PooledRows& pooled, std::span<float> logits) = 0;
  // Writes vectors [slice size, width]. See Step::PredictMatch.
  virtual void ForwardMatch(const Batch& slice, const PooledRows& pooled,
                            const MatchVectors& vectors);

  ShardedEmbeddings& embeddings() { return state_.embeddings(); }
  int first_virtual_worker() const { return state_.virtual_workers().begin; }
  // How many virtual workers this worker has.
  size_t num_virtual_workers() const {
    return static_cast<size_t>(state_.virtual_workers().size());
  }

  DenseGradients dense_gradients_;

 private:
  // The stages before a forward pass that is no part of a step, and those after it.
  PooledRows BeginForward(const Batch& slice, const Batch* next, PreparedBatches* batches);
  void EndForward(const PooledRows& pooled, PreparedBatches* batches);

  // The stages of a step.
  ExchangedIds ExchangeIds(const Batch& slice);  // unless the last step exchanged them
  PooledInFlight LookUp(const ExchangedIds& ids);
  void BeginNextIds(const Batch* next);
  PooledRows Receive(const PooledInFlight& sent);
  GradientsInFlight Send(const PooledGradients& gradients);
  DenseSumInFlight BeginReduction(const DenseLeaves& leaves);
  ArrivedGradients Receive(const GradientsInFlight& sent);
  DenseSum EndReduction(const DenseSumInFlight& reducing);
  // Returns the factor for all gradients. The dense part is scaled here, rows in their update.
  float Clip(const DenseSum& dense, const ArrivedGradients& rows);
  // Returns whether everything updated is finite.
  bool UpdateTables(const StepInput& input, const ArrivedGradients& rows, float clip);
  void UpdateDense(const StepInput& input, const DenseSum& gradient);
  void EndNextIds();
  bool CheckDense();

  bool DenseIsFinite();

  AlignedBuffer gradient_;
  RunningStatistics running_statistics_;
  std::vector<char> finite_;  // per thread
};

}  // namespace renzan
