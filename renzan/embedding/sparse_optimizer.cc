#include "renzan/embedding/sparse_optimizer.h"

#include <vector>

#include "renzan/embedding/kernels.h"
#include "renzan/embedding/shard.h"
#include "renzan/optim/gradient_norm.h"

namespace renzan {

namespace {

RowStep StepOf(const SparseOptimizerOptions& options, const SparseStep& step, size_t block,
               const EmbeddingShard& shard) {
  const double rate = step.learning_rate * shard.table.learning_rate_factor;
  RowStep row_step{.optimizer = FactorsOf(options, rate, step.optimizer_step),
                   .gradient_scale = step.gradient_scale,
                   .rounding_key = shard.rounding_key,
                   .step = step.step,
                   .stride = shard.rows.Stride(),
                   .offset = shard.rows.Offset(block),
                   .first_column = shard.first_column()};
  if (options.weight_decay_mode == WeightDecayMode::kL2) {
    row_step.l2 = static_cast<float>(options.weight_decay);
  } else {
    row_step.kept = static_cast<float>(1 - rate * options.weight_decay);
  }
  return row_step;
}

template <class Visit>
void ForEachDistinctRow(std::span<const Lookup> lookups, const Visit& visit) {
  for (size_t i = 0; i < lookups.size(); ++i)
    if (i == 0 || RowOf(lookups[i]) != RowOf(lookups[i - 1]))
      visit(static_cast<int32_t>(RowOf(lookups[i])));
}

// The slots of the distinct rows of `gradients`, whose batch keeps them pinned; null if rows are
// their own slots.
class SlotsOfDistinctRows {
 public:
  SlotsOfDistinctRows(RowStore& store, const RowGradients& gradients) {
    if (store.slots_are_rows()) return;
    thread_local std::vector<int32_t> rows, slots;
    rows.clear();
    ForEachDistinctRow(gradients.lookups, [&](int32_t row) { rows.push_back(row); });
    slots_ = PinnedRows(store, rows, &slots).slots().data();
  }
  // Valid while the batch's rows stay pinned, on this thread, until it makes another of these.
  const int32_t* get() const { return slots_; }

 private:
  const int32_t* slots_ = nullptr;
};

}  // namespace

void CatchUpRows(std::span<const int32_t> rows, size_t block, EmbeddingShard* shard) {
  IdleRows& idle = *shard->idle;
  thread_local std::vector<int32_t> behind, scratch;
  behind.clear();
  for (const int32_t row : rows)
    if (idle.IsBehind(row)) behind.push_back(row);
  if (behind.empty()) return;
  const PinnedRows pinned(*shard->store, behind, &scratch);
  const RowSlots& store = shard->store->slots();
  thread_local std::vector<IdleRows::RowInSlot> moving;
  moving.clear();
  for (size_t i = 0; i < behind.size(); ++i) {
    const int32_t row = behind[i], slot = pinned.slots()[i];
    if (idle.IsAtRest(store, slot)) {
      idle.Rest(row);
    } else {
      shard->blocks[block].BeforeUpdate(row);
      moving.push_back({row, slot});
    }
  }
  idle.CatchUp(store, moving);
}

void CatchUpRowsOf(std::span<const Lookup> sorted, size_t block, EmbeddingShard* shard) {
  thread_local std::vector<int32_t> rows;
  rows.clear();
  ForEachDistinctRow(sorted, [&](int32_t row) { rows.push_back(row); });
  CatchUpRows(rows, block, shard);
}

IdleStep IdleStepOf(const SparseOptimizerOptions& options, const SparseStep& step,
                    const EmbeddingShard& shard) {
  const RowStep row_step = StepOf(options, step, 0, shard);
  return {.optimizer = row_step.optimizer, .kept = row_step.kept};
}

bool ApplySparse(const SparseOptimizerOptions& options, const SparseStep& step,
                 const RowGradients& gradients, const float* mean_squares, size_t block,
                 EmbeddingShard* shard) {
  if (shard->table.frozen) return true;
  ForEachDistinctRow(gradients.lookups, [&](int32_t row) {
    shard->blocks[block].BeforeUpdate(row);
    if (shard->idle) shard->idle->Take(row);
  });
  RowStep row_step = StepOf(options, step, block, *shard);
  row_step.mean_squares = mean_squares;
  const SlotsOfDistinctRows slots(*shard->store, gradients);
  return UpdateRows(row_step, gradients, shard->store->slots(), slots.get());
}

size_t SquaresForStep(const SparseOptimizerOptions& options, const SparseStep& step,
                      const RowGradients& gradients, size_t block, const EmbeddingShard& shard,
                      float* squares) {
  const SlotsOfDistinctRows slots(*shard.store, gradients);
  return StepSquares(StepOf(options, step, block, shard), gradients, shard.store->slots(),
                     slots.get(), squares);
}

double SquaredGradientNorm(const RowGradients& gradients, int64_t dim) {
  thread_local std::vector<double> rows;
  rows.resize(gradients.lookups.size());
  return TreeSum(std::span(rows).first(RowGradientSquares(gradients, dim, rows.data())));
}

}  // namespace renzan
