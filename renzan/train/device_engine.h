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

#include "renzan/base/aligned_buffer.h"
#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/cuda/device_model.h"
#include "renzan/data/batch.h"
#include "renzan/embedding/sharded_embeddings.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/train/config.h"

namespace renzan {

// The GPU of a worker: with several on a machine, workers take turns; those of a machine
// have consecutive ranks.
int DeviceOf(int rank);

class DeviceEngine {
 public:
  struct Host {
    AlignedBuffer* parameters = nullptr;
    DenseOptimizer* dense_optimizer = nullptr;
    ShardedEmbeddings* embeddings = nullptr;
    ThreadPool* pool = nullptr;
  };
  // All of `host` must outlive it.
  DeviceEngine(const TrainConfig& config, const ModelOptions& model, Communicator& comm,
               const Host& host);

  // Whether whole steps are computed on the device.
  bool has_tables() const { return has_tables_; }

  // After the host's parameters, states or rows were set: they are copied before the next use.
  void HostChanged() { host_is_newer_ = true; }
  // Makes the host's parameters, states and rows those of the device.
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

  Host host_;
  int64_t global_batch_, own_samples_, pooled_columns_ = 0;
  bool has_tables_ = false, host_is_newer_ = true, device_is_newer_ = false;
  std::unique_ptr<DeviceModel> model_;
  const Batch* staged_ = nullptr;
  std::vector<float> pooled_;
  std::vector<std::vector<int32_t>> offsets_;  // by table
};

}  // namespace renzan
