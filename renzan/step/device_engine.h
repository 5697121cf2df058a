#pragma once

// What a worker computes on a GPU (device: cuda). There are two ways, which give the same bits:
//
// - With one worker, whose tables and plain settings a GPU can have in its memory, whole steps are
//   computed there; tables and optimizer states return to the host's memory for checkpoints.
// - Else the dense part alone: pooled rows go there, their gradients and those of each virtual
//   worker's dense parameters come back, and everything that workers exchange stays on the host.
//
// Not thread-safe.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/cuda/device_model.h"
#include "renzan/data/batch.h"
#include "renzan/state/model_state.h"

namespace renzan {

// The GPU of a worker, by its local rank: with several GPUs in a machine, its workers take turns.
int DeviceOf(const Communicator& comm);

class DeviceEngine {
 public:
  // `state` must outlive it.
  DeviceEngine(ModelState& state, Communicator& comm);

  // Whether whole steps are computed on the device.
  bool has_tables() const { return has_tables_; }

  // Makes the host's parameters, states and rows those of the device. Where they have changed since
  // (ModelState::version), they are copied there before the next use.
  void UpdateHost();

  // Whole steps. `batch`: the prepared ids of `slice`.
  void BeginStep(const Batch& slice, const PreparedBatch& batch, const DeviceStep& step);
  void BeginPredict(const Batch& slice, const PreparedBatch& batch);
  // Copies the slice of the next call meanwhile.
  void Stage(const Batch& slice, const PreparedBatch& batch);

  // The dense part alone. The pooled rows of own samples, [own samples, columns of all tables],
  // which the caller writes and which then receive their gradients.
  std::span<float> pooled() { return pooled_; }
  int64_t pooled_columns() const { return pooled_columns_; }
  void BeginForwardAndBackward(const Batch& slice, int64_t step);
  void BeginPredict(const Batch& slice);
  // After FinishInto: `dense` for each own virtual worker.
  void ReadGradients(std::span<const std::span<float>> dense);

  DeviceModel::Result FinishInto(std::span<float> logits) { return model_->Finish(logits); }

 private:
  void UpdateDevice();
  void StagePooled(const Batch& slice);
  void Copy(const DeviceBatch& batch);

  ModelState& state_;
  int64_t global_batch_, own_samples_, pooled_columns_ = 0;
  bool has_tables_ = false, device_is_newer_ = false;
  int64_t version_ = -1;  // of the state that the device has
  std::unique_ptr<DeviceModel> model_;
  const Batch* staged_ = nullptr;
  std::vector<float> pooled_;
  std::vector<std::vector<int32_t>> offsets_;  // by table
};

}  // namespace renzan
