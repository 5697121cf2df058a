#pragma once

// Error feedback: what the wire codec takes from the gradient of a pooled row is kept, and added to
// the next gradient of the same row. Small gradients then come late instead of never, and the sum
// of what arrives follows the sum of what was sent (Seide et al., "1-Bit Stochastic Gradient
// Descent", 2014; Karimireddy et al., "Error Feedback Fixes SignSGD", 2019).
//
// Residuals are those of a virtual worker, so placement cannot change them. Memory is bounded: a
// table has a number of slots, and a bag's is given by the lowest bits of its key, which is the id,
// or a hash of the ids where there are several. A slot holds what was kept for the last bag that
// used it; what it held for another one is lost. Ids are often ordered by frequency, and batches
// repeat the most frequent ones, so a few thousand slots hold most of what would be used again.
//
// Thread-safe for different virtual workers.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/embedding/input_dist.h"
#include "renzan/embedding/shard_map.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

// How many slots a table has, if there may be `rows` (a power of two, or 0 for none).
int64_t ErrorFeedbackSlots(const TableSpec& table, int64_t rows);

class ErrorFeedback {
 public:
  struct Slots {
    std::vector<int64_t> keys;  // [slots]
    AlignedBuffer residuals;    // [slots, dim], of the gradients as they are scaled for the wire
    int64_t dim = 0;

    std::vector<int64_t> keys_shape() const { return {std::ssize(keys)}; }
    std::vector<int64_t> residuals_shape() const { return {std::ssize(keys), dim}; }
  };
  // The residual of a sample's bag.
  struct Claim {
    float* residual;  // [dim]
    bool holds;       // what was kept for the same bag, and not for another one
  };

  ErrorFeedback() = default;
  ErrorFeedback(const ShardMap& map, int64_t rows);

  bool enabled() const { return !slots_.empty(); }
  // Of this worker's keys and residuals.
  uint64_t bytes() const;

  // Slots for all bags of a virtual worker's samples, in their order. `ids`: a table's, of all
  // samples of this worker. Where several claim one slot, each finds what the one before it left,
  // so they must be used in order. Nothing to be relied on for empty bags.
  void ClaimSlots(const IdsView& ids, size_t table, int virtual_worker, std::vector<Claim>* claims);

  // Of a virtual worker that is assigned to this worker: for saving and loading.
  Slots& of(int virtual_worker, size_t table) {
    return slots_[static_cast<size_t>(virtual_worker - first_virtual_worker_)][table];
  }

 private:
  int first_virtual_worker_ = 0;
  int64_t samples_ = 0;                    // of a virtual worker
  std::vector<std::vector<Slots>> slots_;  // by own virtual worker and table
};

}  // namespace renzan
