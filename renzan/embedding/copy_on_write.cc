#include "renzan/embedding/copy_on_write.h"

#include <algorithm>
#include <thread>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Small, so that a step that updates scattered rows copies little; large enough that the state word
// per block does not matter.
constexpr int64_t kBlockFloats = 1024;

}  // namespace

CopyOnWrite::CopyOnWrite(const float* values, int64_t num_rows, int64_t width, const RowSet* only)
    : values_(values),
      num_rows_(num_rows),
      width_(width),
      rows_per_block_(std::max<int64_t>(1, kBlockFloats / std::max<int64_t>(1, width))),
      blocks_(static_cast<size_t>((num_rows + rows_per_block_ - 1) / rows_per_block_)) {
  if (only == nullptr) return;
  for (int64_t b = 0; b < static_cast<int64_t>(blocks_.size()); ++b)
    if (!only->ContainsAny(b * rows_per_block_, b * rows_per_block_ + RowsOf(b)))
      blocks_[static_cast<size_t>(b)].store(Taken(), std::memory_order_relaxed);
}

CopyOnWrite::~CopyOnWrite() {
  for (std::atomic<float*>& block : blocks_) {
    float* copy = block.load(std::memory_order_acquire);
    if (copy != nullptr && copy != Busy() && copy != Taken()) delete[] copy;
  }
}

int64_t CopyOnWrite::RowsOf(int64_t block) const {
  return std::min(rows_per_block_, num_rows_ - block * rows_per_block_);
}

void CopyOnWrite::Preserve(int64_t block) {
  std::atomic<float*>& state = blocks_[static_cast<size_t>(block)];
  const int64_t floats = RowsOf(block) * width_;
  // Allocate before marking the block busy: others wait for it, and the allocation may fail.
  std::unique_ptr<float[]> copy(new float[static_cast<size_t>(floats)]);
  float* seen = nullptr;
  if (state.compare_exchange_strong(seen, Busy(), std::memory_order_acquire)) {
    std::copy_n(values_ + block * rows_per_block_ * width_, floats, copy.get());
    copied_.fetch_add(1, std::memory_order_relaxed);
    state.store(copy.release(), std::memory_order_release);
    return;
  }
  // The thread copying it needs at most one block's time, unless it is descheduled.
  while (state.load(std::memory_order_acquire) == Busy()) std::this_thread::yield();
}

void CopyOnWrite::Take(int64_t block, float* out) {
  std::atomic<float*>& state = blocks_[static_cast<size_t>(block)];
  const int64_t floats = RowsOf(block) * width_;
  float* seen = nullptr;
  if (state.compare_exchange_strong(seen, Busy(), std::memory_order_acquire)) {
    std::copy_n(values_ + block * rows_per_block_ * width_, floats, out);
    state.store(Taken(), std::memory_order_release);
    return;
  }
  while ((seen = state.load(std::memory_order_acquire)) == Busy()) std::this_thread::yield();
  CHECK_MSG(seen != Taken(), "a block of rows was read twice or is not part of the view");
  std::copy_n(seen, floats, out);
  state.store(Taken(), std::memory_order_release);
  delete[] seen;
}

const float* CopyOnWrite::Buffered(int64_t block) {
  if (block != buffered_block_) {
    buffer_.resize(static_cast<size_t>(rows_per_block_ * width_));
    Take(block, buffer_.data());
    buffered_block_ = block;
  }
  return buffer_.data();
}

void CopyOnWrite::ReadNext(std::span<float> out) {
  const int64_t block_floats = rows_per_block_ * width_;
  float* to = out.data();
  for (float* const end = to + out.size(); to < end;) {
    const int64_t block = next_value_ / block_floats, first = next_value_ % block_floats;
    CHECK_MSG(block < static_cast<int64_t>(blocks_.size()), "read past the last value");
    const int64_t whole = RowsOf(block) * width_, n = std::min(whole - first, end - to);
    if (n == whole) {
      Take(block, to);
    } else {
      std::copy_n(Buffered(block) + first, n, to);
    }
    next_value_ += n;
    to += n;
  }
}

void CopyOnWrite::ReadNext(std::span<const int32_t> rows, std::span<float> out) {
  float* to = out.data();
  for (float* const end = to + out.size(); to < end;) {
    const int64_t row = rows[static_cast<size_t>(next_value_ / width_)];
    const int64_t first = next_value_ % width_, n = std::min(width_ - first, end - to);
    const float* values = Buffered(row / rows_per_block_) + row % rows_per_block_ * width_;
    std::copy_n(values + first, n, to);
    next_value_ += n;
    to += n;
  }
}

}  // namespace renzan
