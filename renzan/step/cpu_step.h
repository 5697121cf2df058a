#pragma once

// A step on this process's CPUs alone.

#include <memory>
#include <vector>

#include "renzan/base/function_ref.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/run_spec/item_inputs.h"
#include "renzan/step/host_step.h"

namespace renzan {

class CpuStep final : public HostStep {
 public:
  // `counts`: see MakeStep().
  CpuStep(ModelState& state, Communicator& comm, std::vector<IdCounts> counts);

 private:
  void Pack() override;
  BackwardResult ForwardAndBackward(const StepInput& input, const PooledRows& pooled) override;
  void Forward(const Batch& slice, const PooledRows& pooled, std::span<float> logits) override;
  void ForwardMatch(const Batch& slice, const PooledRows& pooled,
                    const MatchVectors& vectors) override;
  // Without dropout, on all threads: calls read(index of the virtual worker, its workspace).
  void ForwardOfAll(const Batch& slice, const PooledRows& pooled,
                    FunctionRef<void(size_t index, const Model::Workspace& workspace)> read);

  // For one virtual worker, counted within this worker: adds predictions to `input.metrics`, leaves
  // its dense gradient in dense_gradients_, and the gradients of its pooled rows in the embeddings.
  void TrainVirtualWorker(const StepInput& input, const ExchangedIds& ids, size_t index,
                          int thread);
  // Adds predictions to `input.metrics`, and writes the logits' gradients. Outputs without a task
  // have none: the workspace's are zero from the beginning.
  void ComputeLosses(const StepInput& input, size_t index, int thread, Model::Workspace* workspace);
  // Fills the workspace with one virtual worker's inputs. `index` counts within this worker.
  void Load(const Batch& slice, const ExchangedIds& ids, size_t index, Model::Workspace* workspace);

  ItemInputs items_;
  PackedParameters packed_;
  int64_t packed_version_ = -1;                                // of the state
  std::vector<std::unique_ptr<Model::Workspace>> workspaces_;  // per thread
};

}  // namespace renzan
