#pragma once

// The tables of a single process in the device's memory: lookup, update, and the rows that
// checkpoints need.

#include <optional>
#include <span>
#include <vector>

#include "renzan/cuda/device_model.h"
#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/memory.cuh"

namespace renzan::cuda {

class EmbeddingEngine {
 public:
  // `features`: values per sample; the pooled rows begin at column `first_column`.
  EmbeddingEngine(const DeviceModelOptions& options, int64_t features, int64_t first_column,
                  const Stream& stream);

  // To be called before a batch with so many lookups. Returns whether memory was reallocated.
  bool Reserve(int64_t lookups);

  // Launches only.
  void Pool(const DeviceLookups& lookups, void* features, const Stream& stream) const;
  void Sort(const DeviceLookups& lookups, const Stream& stream);
  void Update(const SparseStepOnDevice* step, const DeviceLookups& lookups, const void* d_features,
              int32_t* finite, const Stream& stream);

  void SetRows(size_t table, int64_t first, std::span<const float> weights,
               std::span<const float> states);
  using VisitRows =
      FunctionRef<void(size_t table, std::span<const int32_t> rows, std::span<const float> weights,
                       std::span<const float> states)>;
  void TakeUpdatedRows(VisitRows visit);

 private:
  struct Table {
    DeviceMemory weights, states, block_begin;
    int64_t rows = 0, dim = 0, state_width = 0, first_row = 0;
  };
  // Rows on their way to the host.
  struct Piece {
    size_t table = 0;
    std::vector<int32_t> rows;
    DeviceMemory rows_on_device, values_on_device;
    PinnedMemory values;  // weights, then states
    Event arrived;
  };
  void Gather(Piece* piece) const;
  void Visit(const Piece& piece, VisitRows visit) const;

  const Stream& stream_;
  std::vector<Table> tables_;
  EmbeddingShape shape_;
  DeviceMemory device_tables_, touched_;
  int64_t capacity_ = 0;  // lookups
  std::optional<SortedLookups> sorted_;
  std::optional<SparseUpdate> update_;
};

}  // namespace renzan::cuda
