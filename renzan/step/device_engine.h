#pragma once

// What a worker computes on a GPU (device: cuda). There are two ways, which give the same bits:
//
// - With a single worker, if its tables fit into the GPU's memory and its settings are plain
// enough, whole steps. Tables and optimizer states return to the host's memory for checkpoints.
// - Otherwise the dense part alone. Pooled rows go to the GPU; their gradients and those of each
// virtual worker's dense parameters come back; everything that workers exchange stays on the host.
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

// A worker's GPU, by its local rank: the workers of a machine with several GPUs take them in turn.
int DeviceOf(const Communicator& comm);

class DeviceEngine {
 public:
  // `state` must outlive it.
  DeviceEngine(ModelState& state, Communicator& comm);

  // Whether whole steps are computed on the device.
  bool has_tables() const { return has_tables_; }

  // Copies the device's parameters, states and rows to the host. If the host's state changes
  // afterwards (ModelState::version), it is copied back before the device's next use.
  void UpdateHost();

  // For whole steps. `batch`: the prepared ids of `slice`.
  void BeginStep(const Batch& slice, const PreparedBatch& batch, const DeviceStep& step);
  void BeginPredict(const Batch& slice, const PreparedBatch& batch);
  // Copies the next call's slice to the device meanwhile.
  void Stage(const Batch& slice, const PreparedBatch& batch);

  // For the dense part alone: the pooled rows of own samples, [own samples, columns of all tables].
  // The caller writes them, and their gradients overwrite them.
  std::span<float> pooled() { return pooled_; }
  int64_t pooled_columns() const { return pooled_columns_; }
  void BeginForwardAndBackward(const Batch& slice, int64_t step);
  void BeginPredict(const Batch& slice);
  // After FinishInto(): the dense gradient of each own virtual worker.
  void ReadGradients(std::span<const std::span<float>> dense);

  DeviceModel::Result FinishInto(std::span<float> logits) { return model_->Finish(logits); }

 private:
  void UpdateDevice();
  void StagePooled(const Batch& slice);
  void Copy(const DeviceBatch& batch);

  ModelState& state_;
  int64_t global_batch_, own_samples_, pooled_columns_ = 0;
  bool has_tables_ = false, device_is_newer_ = false;
  int64_t version_ = -1;  // the state's version that the device has
  std::unique_ptr<DeviceModel> model_;
  const Batch* staged_ = nullptr;
  std::vector<float> pooled_;
  std::vector<std::vector<int32_t>> offsets_;  // by table
};

}  // namespace renzan
