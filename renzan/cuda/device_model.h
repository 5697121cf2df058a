#pragma once

// A model on a GPU, behind an interface that needs no CUDA: the implementation is in
// librenzan_cuda.so, which is loaded when first needed (load.h), so that one program runs with and
// without a GPU.
//
// The arithmetic follows virtual workers as on the CPU: the shapes, algorithms and order of sums of
// a virtual worker's products do not depend on which other virtual workers the process has. So runs
// on one class of GPU have the same bits on any number of workers. Not thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/function_ref.h"
#include "renzan/model/model.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/optim/sparse_optimizers.h"

namespace renzan {

// In one batch. With more, positions of lookups would not fit into 32 bits.
inline constexpr int64_t kMaxDeviceLookups = (int64_t{1} << 31) - 64;
// Rows with at least kManyLookups lookups in a batch (more in large batches) are split across
// warps; partial sums use at most kMaxLeafFloats floats.
inline constexpr int64_t kManyLookups = 33;
inline constexpr int64_t kMaxLeafFloats = int64_t{1} << 25;

// This many rows at a time return to the host, while as many more are gathered.
inline constexpr int64_t kReturningRows = int64_t{1} << 15;

// The models that GPUs compute are dlrm, with a dot interaction, and dlrm_dcnv2, with a cross
// network.
inline bool HasDotInteraction(const ModelOptions& model) { return model.type == "dlrm"; }

struct DeviceFacts {
  std::string name;       // "NVIDIA H100 80GB HBM3"
  std::string gpu_class;  // "sm_90x132": architecture and multiprocessors, which determine the bits
  int64_t total_bytes = 0, free_bytes = 0;
  std::string driver, runtime, products;  // versions: "13.0", "13.0", "cuBLASLt 13.1.0"
};

// A shard's rows in the device's memory: all row blocks and some columns of a table.
struct DeviceTableOptions {
  int64_t rows = 0, dim = 0, state_width = 0;  // floats of a row's optimizer state
  int64_t first_column = 0;                    // in a sample's pooled rows, all tables side by side
  bool mean = false;
  double pooling_factor = 1;         // mean lookups per sample, an estimate
  std::vector<int64_t> block_begin;  // [row blocks + 1]
};

struct DeviceModelOptions {
  ModelOptions model;
  bool tf32 = false;             // products of float32 in TF32
  int virtual_workers = 1;       // of all processes
  int own_virtual_workers = 1;   // of this process
  int first_virtual_worker = 0;  // of this process
  int64_t samples = 0;           // per virtual worker
  int device = 0;
  // The tables if they are in the device's memory, which requires a single process; empty if they
  // are in the host's.
  std::vector<DeviceTableOptions> tables;
  SparseOptimizerOptions sparse;
  DenseOptimizerOptions dense;

  int64_t own_samples() const { return own_virtual_workers * samples; }
};

// This process's slice of a global batch.
struct DeviceBatch {
  std::span<const float> dense;   // [own samples, num_dense]
  std::span<const float> labels;  // [own samples]
  // For tables in the host's memory: the pooled rows [own samples, dims of all tables].
  std::span<const float> pooled;
  // For tables on the device, by table: the rows looked up, and [own samples + 1] offsets of the
  // bags, or no offsets if every bag has one row.
  std::vector<std::span<const int32_t>> rows, offsets;
};

// Calls task(i) for every i in [0, n), possibly on several threads.
using ParallelTasks = FunctionRef<void(size_t n, FunctionRef<void(size_t i)> task)>;

struct DeviceStep {
  double sparse_learning_rate = 0, dense_learning_rate = 0;
  int64_t step = 0;                   // from 0
  int64_t dense_optimizer_steps = 0;  // that it has made: DenseOptimizer::earlier_steps() more
};

class DeviceModel {
 public:
  virtual ~DeviceModel() = default;

  virtual const DeviceFacts& facts() const = 0;

  // The flat dense parameters (ParameterLayout), and the optimizer's states if the optimizer is
  // here.
  virtual void SetParameters(std::span<const float> parameters) = 0;
  virtual void GetParameters(std::span<float> parameters) = 0;
  virtual void SetDenseState(size_t index, std::span<const float> values) = 0;
  virtual void GetDenseState(size_t index, std::span<float> values) = 0;

  // Rows [first, first + n) of a table: weights [n, dim], and states [n, state floats of a row].
  virtual void SetRows(size_t table, int64_t first, std::span<const float> weights,
                       std::span<const float> states) = 0;
  // Calls visit(table, rows, weights, states) for pieces of the rows updated since the last call.
  virtual void TakeUpdatedRows(
      FunctionRef<void(size_t table, std::span<const int32_t> rows, std::span<const float> weights,
                       std::span<const float> states)>
          visit) = 0;

  // Copies a batch to the device while computation continues. At most one staged batch may be
  // waiting.
  virtual void Stage(const DeviceBatch& batch, ParallelTasks parallel) = 0;

  // Begins to compute on the staged batch. Finish() returns when the predictions of the oldest
  // unfinished computation are there. At most two may be unfinished, and at most one when a batch
  // is staged.
  virtual void BeginForward() = 0;
  // `global_batch`: the samples that the loss is averaged over.
  virtual void BeginForwardAndBackward(int64_t global_batch, int64_t step) = 0;
  // The same, and the updates. Only if tables and optimizers are on the device.
  virtual void BeginStep(int64_t global_batch, const DeviceStep& step) = 0;

  struct Result {
    bool dense_finite = true, tables_finite = true;  // after BeginStep
  };
  // Writes logits [own samples].
  virtual Result Finish(std::span<float> logits) = 0;

  // After BeginForwardAndBackward() and Finish(): the gradients of the pooled rows, [own samples,
  // dims of all tables], and of the dense parameters, one flat array for each own virtual worker.
  virtual void ReadGradients(std::span<float> pooled, std::span<const std::span<float>> dense) = 0;
};

}  // namespace renzan
