#pragma once

// Error feedback: what the wire codec rounds away from the gradient of a bag's pooled row is kept
// and added to the next gradient of the same bag. Small gradients then arrive late instead of
// never, and the sum of what arrives tracks the sum of what was sent (Seide et al., "1-Bit
// Stochastic Gradient Descent", 2014; Karimireddy et al., "Error Feedback Fixes SignSGD", 2019).
//
// Residuals belong to virtual workers, so placement cannot change them. Memory is bounded: each
// table has a fixed number of slots, and the low bits of a bag's key select its slot. The key is
// the id, or a hash of the ids if there are several. A slot holds the residual of the last bag that
// used it; that of any earlier bag is lost. Ids are often ordered by frequency, and batches repeat
// the most frequent ones, so a few thousand slots hold most of what would be reused.
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

// The number of slots of a table: at most `rows`, which is a power of two, or 0 for no error
// feedback.
int64_t ErrorFeedbackSlots(const TableSpec& table, int64_t rows);

class ErrorFeedback {
 public:
  struct Slots {
    std::vector<int64_t> keys;  // [slots]
    AlignedBuffer residuals;    // [slots, dim], scaled like the gradients on the wire
    int64_t dim = 0;

    std::vector<int64_t> keys_shape() const { return {std::ssize(keys)}; }
    std::vector<int64_t> residuals_shape() const { return {std::ssize(keys), dim}; }
  };
  // The residual of a bag.
  struct Claim {
    float* residual;  // [dim]
    bool holds;       // whether it was kept for this bag, not for another one
  };

  ErrorFeedback() = default;
  ErrorFeedback(const ShardMap& map, int64_t rows);

  bool enabled() const { return !slots_.empty(); }
  // The size of this worker's keys and residuals.
  uint64_t bytes() const;

  // Claims slots for the bags of a virtual worker's samples, in their order. `ids`: one table's,
  // for all samples of this worker. Bags that share a slot each find what the previous one
  // left, so the claims must be used in order. The claims of empty bags are unspecified.
  void ClaimSlots(const IdsView& ids, size_t table, int virtual_worker, std::vector<Claim>* claims);

  // For saving and loading. The virtual worker must be assigned to this worker.
  Slots& of(int virtual_worker, size_t table) {
    return slots_[static_cast<size_t>(virtual_worker - first_virtual_worker_)][table];
  }

 private:
  int first_virtual_worker_ = 0;
  std::vector<int64_t> bags_;              // of a virtual worker, by table
  std::vector<std::vector<Slots>> slots_;  // by own virtual worker and table
};

}  // namespace renzan
