#include "renzan/embedding/idle_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/embedding/idle_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/optim/idle_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

void TakeIdleStepsOf(const IdleSteps& idle, size_t n, float* s, float* w) {
  TakeSteps(idle, n, s, w);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(TakeIdleStepsOf);

IdleRows::IdleRows(const SparseOptimizerOptions& options, int64_t rows, bool at_rest)
    : options_(options),
      l2_(options.weight_decay_mode == WeightDecayMode::kL2
              ? static_cast<float>(options.weight_decay)
              : 0.0f),
      done_(static_cast<size_t>(rows), at_rest && options.weight_decay == 0 ? kAtRest : 0) {
  CHECK(IdleRowsMove(options));
  steps_.reserve(kMostSteps);
}

void IdleRows::Miss(const IdleStep& step) {
  steps_.push_back(step);
  most_rate_ = std::max(most_rate_, step.optimizer.lr);
}

void IdleRows::Take(int64_t row) {
  int32_t& done = done_[static_cast<size_t>(row)];
  CHECK_MSG(done >= std::ssize(steps_) - 1, "row {} has missed steps", row);
  done = static_cast<int32_t>(steps_.size());
}

bool IdleRows::IsAtRest(const RowSlots& store, int64_t slot) const {
  if (options_.weight_decay != 0) return false;
  const int64_t width = StateFloatsPerRow(options_.type, store.dim);
  return std::all_of(store.state + slot * width, store.state + (slot + 1) * width,
                     [](float x) { return std::bit_cast<uint32_t>(x) == 0; });
}

int64_t IdleRows::moving() const { return std::ssize(done_) - std::ranges::count(done_, kAtRest); }

// Rows that have missed the same steps take them together.
void IdleRows::CatchUp(const RowSlots& store, std::span<RowInSlot> rows) {
  CHECK(store.type == FloatType::kFloat32);
  const auto done = [&](const RowInSlot& at) { return done_[static_cast<size_t>(at.row)]; };
  std::ranges::sort(rows, {}, [&](const RowInSlot& at) { return std::pair(done(at), at.row); });
  const size_t most = static_cast<size_t>(std::max<int64_t>(1, 512 / store.dim));
  for (size_t begin = 0, end; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && end - begin < most;) {
      if (done(rows[end]) != done(rows[begin])) break;
      ++end;
    }
    CatchUpTogether(store, rows.subspan(begin, end - begin));
  }
}

void IdleRows::CatchUpTogether(const RowSlots& store, std::span<const RowInSlot> rows) {
  const size_t dim = static_cast<size_t>(store.dim);
  const size_t n = (rows.size() * dim + kIdleLanes - 1) / kIdleLanes * kIdleLanes;
  const size_t states = static_cast<size_t>(InfoOf(options_.type).state_per_value());
  // The rows' values, then those of their first state, and so on; zeros fill the last group.
  thread_local std::vector<float> values;
  values.assign((1 + states) * n, 0.0f);
  const auto for_each_part = [&](const auto& visit) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t slot = static_cast<size_t>(rows[i].slot);
      visit(reinterpret_cast<float*>(store.weights) + slot * dim, &values[i * dim]);
      for (size_t j = 0; j < states; ++j)
        visit(store.state + (slot * states + j) * dim, &values[(1 + j) * n + i * dim]);
    }
  };
  for_each_part([&](const float* stored, float* value) { std::copy_n(stored, dim, value); });
  const size_t done = static_cast<size_t>(done_[static_cast<size_t>(rows[0].row)]);
  HWY_DYNAMIC_DISPATCH(TakeIdleStepsOf)
  ({.steps = std::span<const IdleStep>(steps_).subspan(done),
    .l2 = l2_,
    .decays = options_.weight_decay != 0,
    .most_rate = most_rate_},
   n, values.data() + n, values.data());
  for_each_part([&](float* stored, const float* value) { std::copy_n(value, dim, stored); });
  for (const RowInSlot& at : rows)
    done_[static_cast<size_t>(at.row)] = static_cast<int32_t>(steps_.size());
}

void IdleRows::Forget() {
  steps_.clear();
  most_rate_ = 0;
  for (int32_t& done : done_)
    if (done != kAtRest) done = 0;
}

void IdleRows::Restart() {
  steps_.clear();
  most_rate_ = 0;
  std::ranges::fill(done_, 0);
}

}  // namespace renzan
#endif
