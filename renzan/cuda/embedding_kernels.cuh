#pragma once

// Pooled lookup and the exact sparse update on the device. Sums are in the order of the CPU's
// kernels (renzan/embedding/kernels.h, tree_order.h), and products and sums are rounded separately:
// the same inputs give the same bits as on the CPU. There are no atomic additions of floats.
//
// Launches only, on `stream` or on a stream of its own that `stream` then waits for. Pointers are
// to device memory unless stated otherwise.

#include <cuda_runtime.h>

#include <cstdint>

#include "renzan/cuda/device_model.h"
#include "renzan/cuda/memory.cuh"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/tensor/precision.h"

namespace renzan::cuda {

// A shard: all rows of some columns of a table.
struct DeviceTable {
  float* weights = nullptr;  // [rows, dim]
  float* state = nullptr;    // [rows, state floats of a row]
  int32_t dim = 0;           // a multiple of 4
  int32_t column = 0;        // where its pooled row begins in a sample's features; a multiple of 4
  int64_t first_row = 0;     // rows of all tables before it
  int32_t mean = 0;          // whether the sum is divided by the bag's length
  // Row blocks: row r of the shard is in block b if block_begin[b] <= r < block_begin[b + 1].
  int32_t num_blocks = 1;
  const int64_t* block_begin = nullptr;  // [num_blocks + 1]
};

// What a batch looks up in all tables.
struct DeviceLookups {
  const int32_t* rows =
      nullptr;  // of the shards, table after table; a bag's in order of their blocks
  // [tables, samples + 1]: where a table's bags begin in `rows` (absolute). Null if every bag of
  // every table has one row; then table t's bag of sample s is rows[t · samples + s].
  const int32_t* offsets = nullptr;
  int64_t num_lookups = 0;
};

struct EmbeddingShape {
  int num_tables = 0;
  int64_t samples = 0;      // of this process
  int virtual_workers = 1;  // of this process; a power of two that divides `samples`
  int64_t total_rows = 0;   // of all tables, below 2^32
  int64_t features = 0;     // the row stride of the features and their gradients, in values
  Precision precision = Precision::kFloat32;  // of both
  SparseOptimizerType optimizer = SparseOptimizerType::kSgd;
};

// features[s, column .. column + dim) = the pooled row of every sample and table, rounded to the
// precision: PoolRows, or PoolRowBlocks (with a float32 wire) if there is more than one block, then
// times 1 / length for a mean over more than one row. Zeros for an empty bag. `tables` [num_tables]
// is in device memory.
void PoolFeatures(const EmbeddingShape& shape, const DeviceTable* tables,
                  const DeviceLookups& lookups, void* features, cudaStream_t stream);

// A row with many lookups, which are divided among warps. A leaf of its tree is the sum over one
// virtual worker's lookups.
struct RowOfMany {
  uint64_t leaves;      // where its leaves' sums [virtual workers, dim] begin, in floats
  uint32_t row, table;  // first_row + row
  uint32_t begin, end;  // of its lookups
};

// The lookups of a batch sorted by row, over all tables, and its rows in three lists, each in
// ascending order except `many`. All in device memory.
struct LookupsByRow {
  struct Counts {
    uint32_t ones, several, many, padding;
    unsigned long long leaf_floats;  // requested by rows of many
  };

  const uint32_t* rows = nullptr;  // [num_lookups + 1] first_row + row; the last entry is no row
  const uint32_t* bags = nullptr;  // [num_lookups] table · samples + sample; ascending within a row
  const uint32_t* ones = nullptr;  // [ones] the only lookup of a row
  // [several] a row's lookups [begin, end), an empty range if the row is in `many`.
  const uint32_t *begins = nullptr, *ends = nullptr;
  const RowOfMany* many = nullptr;        // [many]
  const uint32_t* leaf_begins = nullptr;  // [many, virtual workers + 1]
  const Counts* counts = nullptr;
};

// Sorts lookups by row, which depends only on the ids. Owns its memory, for at most `max_lookups`.
class SortedLookups {
 public:
  // The sums of leaves use at most `max_leaf_floats`: a row that finds no room is not divided.
  SortedLookups(const EmbeddingShape& shape, int64_t max_lookups,
                uint64_t max_leaf_floats = kMaxLeafFloats);

  void Sort(const DeviceTable* tables, const DeviceLookups& lookups, cudaStream_t stream);

  const LookupsByRow& by_row() const { return by_row_; }
  uint64_t leaf_floats() const { return leaf_floats_; }

 private:
  EmbeddingShape shape_;
  int row_bits_;   // of first_row + row
  uint32_t many_;  // rows with at least so many lookups are divided
  uint64_t leaf_floats_;
  size_t temp_bytes_;  // of CUB
  DeviceMemory memory_;
  LookupsByRow by_row_;
  // In memory_.
  uint32_t *rows_, *bags_, *unsorted_rows_, *unsorted_bags_, *ends_, *leaf_begins_;
  RowOfMany* rows_of_many_;
  LookupsByRow::Counts* counts_;
  void* temp_;
};

// One optimizer step for each row of the batch (UpdateRows). The gradients of a row's lookups are
// summed in order within each virtual worker (sample s belongs to worker s / (samples /
// virtual_workers)), and these sums by the balanced tree. A lookup's gradient is its bag's row of
// `d_features`, times 1 / length for a mean over more than one row, with -0 made +0.
struct SparseStepOnDevice {
  float lr = 0, epsilon = 0;
  float l2 = 0, kept = 1;
};

class SparseUpdate {
 public:
  // `leaf_floats`: at least that of the SortedLookups given to Apply(). Calls of Apply() must not
  // overlap.
  SparseUpdate(const EmbeddingShape& shape, uint64_t leaf_floats);

  // `step` is in device memory, so that a captured launch can be given another one. Sets the bits
  // of updated rows in touched [total_rows / 32, rounded up]. *finite (on the device) becomes 0 if
  // a row or its state is not finite afterwards.
  void Apply(const SparseStepOnDevice* step, const DeviceTable* tables,
             const DeviceLookups& lookups, const LookupsByRow& by_row, const void* d_features,
             uint32_t* touched, int32_t* finite, cudaStream_t stream);

 private:
  EmbeddingShape shape_;
  int multiprocessors_;
  DeviceMemory leaves_;
  // Rows with many lookups are summed beside the others, because the longest sums take long.
  Stream beside_;
  Event fork_, join_;
};

}  // namespace renzan::cuda
