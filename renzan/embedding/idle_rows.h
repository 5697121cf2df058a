#pragma once

// The steps that rows of a shard have missed, where every row takes every step, as in frameworks
// with dense gradients (optimizer.sparse.rows: all). A row that no sample looks up takes its steps
// later: before it is next read (ShardedEmbeddings::LookUp), or before all rows are saved
// (ShardedEmbeddings::CatchUp). They are taken one after another with the arithmetic of a step with
// a gradient of 0, so when a row catches up, and how often, does not change its bits.
//
// Rows are numbered as in their shard. Calls for different rows may run concurrently.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "renzan/embedding/row_slots.h"
#include "renzan/optim/sparse_optimizers.h"

namespace renzan {

class IdleRows {
 public:
  // After so many steps, all rows should catch up: what a step needs is kept until then, and a run
  // that is told to stop then has little to do before it can save its rows. (While a checkpoint is
  // being written they wait for its end.) Passing over the rows costs little beside so many steps.
  static constexpr size_t kMostSteps = 64;

  // `at_rest`: whether the rows begin with states of 0.
  IdleRows(const SparseOptimizerOptions& options, int64_t rows, bool at_rest);

  // The step that the rows of a batch take next, and others miss.
  void Miss(const IdleStep& step);
  size_t steps() const { return steps_.size(); }
  bool IsBehind(int64_t row) const { return done_[static_cast<size_t>(row)] < std::ssize(steps_); }
  // Call it when a row takes the last step. It must have caught up with those before it.
  void Take(int64_t row);

  // Whether steps leave every bit of a row that is behind, until it is looked up.
  bool IsAtRest(const RowSlots& store, int64_t slot) const;
  void Rest(int64_t row) { done_[static_cast<size_t>(row)] = kAtRest; }
  // The rows that are not known to be at rest.
  int64_t moving() const;
  // Takes the steps that these rows have missed, and changes their order.
  struct RowInSlot {
    int32_t row, slot;
  };
  void CatchUp(const RowSlots& store, std::span<RowInSlot> rows);

  // When all rows have caught up: forgets the steps.
  void Forget();
  // When all rows have been set.
  void Restart();

 private:
  void CatchUpTogether(const RowSlots& store, std::span<const RowInSlot> rows);

  static constexpr int32_t kAtRest = std::numeric_limits<int32_t>::max();

  SparseOptimizerOptions options_;
  float l2_;
  float most_rate_ = 0;
  std::vector<IdleStep> steps_;
  std::vector<int32_t> done_;  // by row: how many of steps_
};

}  // namespace renzan
