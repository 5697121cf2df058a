#include "renzan/embedding/copy_on_write.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Small, so that a step that updates scattered rows copies little; large enough that the state word
// per block does not matter.
constexpr int64_t kBlockBytes = 4096;

}  // namespace

CopyOnWrite::CopyOnWrite(CopyRows rows, int64_t num_rows, int64_t row_bytes, const RowSet* only,
                         std::atomic<int64_t>* held)
    : rows_(std::move(rows)),
      num_rows_(num_rows),
      row_bytes_(row_bytes),
      rows_per_block_(std::max<int64_t>(1, kBlockBytes / row_bytes)),
      blocks_(static_cast<size_t>((num_rows_ + rows_per_block_ - 1) / rows_per_block_)),
      held_(held) {
  if (only == nullptr) return;
  for (int64_t b = 0; b < static_cast<int64_t>(blocks_.size()); ++b)
    if (!only->ContainsAny(b * rows_per_block_, b * rows_per_block_ + RowsOf(b)))
      blocks_[static_cast<size_t>(b)].store(Taken(), std::memory_order_relaxed);
}

CopyOnWrite::~CopyOnWrite() {
  for (int64_t b = 0; b < static_cast<int64_t>(blocks_.size()); ++b) {
    std::byte* copy = blocks_[static_cast<size_t>(b)].load(std::memory_order_acquire);
    if (copy == nullptr || copy == Busy() || copy == Taken()) continue;
    delete[] copy;
    Hold(-RowsOf(b) * row_bytes_);
  }
}

int64_t CopyOnWrite::RowsOf(int64_t block) const {
  return std::min(rows_per_block_, num_rows_ - block * rows_per_block_);
}

// Of a block that this thread has marked busy. An error must not leave the others waiting.
void CopyOnWrite::Copy(int64_t block, std::byte* out) {
  try {
    rows_(block * rows_per_block_, RowsOf(block), out);
  } catch (...) {
    blocks_[static_cast<size_t>(block)].store(nullptr, std::memory_order_release);
    throw;
  }
}

void CopyOnWrite::Preserve(int64_t block) {
  std::atomic<std::byte*>& state = blocks_[static_cast<size_t>(block)];
  const int64_t bytes = RowsOf(block) * row_bytes_;
  // Allocate before marking the block busy: others wait for it, and the allocation may fail.
  std::unique_ptr<std::byte[]> copy(new std::byte[static_cast<size_t>(bytes)]);
  std::byte* seen = nullptr;
  if (state.compare_exchange_strong(seen, Busy(), std::memory_order_acquire)) {
    Copy(block, copy.get());
    copied_.fetch_add(1, std::memory_order_relaxed);
    Hold(bytes);
    state.store(copy.release(), std::memory_order_release);
    return;
  }
  // The thread copying it needs at most one block's time, unless it is descheduled.
  while ((seen = state.load(std::memory_order_acquire)) == Busy()) std::this_thread::yield();
  if (seen == nullptr) Preserve(block);  // the other thread's copy failed
}

void CopyOnWrite::Take(int64_t block, std::byte* out) {
  std::atomic<std::byte*>& state = blocks_[static_cast<size_t>(block)];
  const int64_t bytes = RowsOf(block) * row_bytes_;
  std::byte* seen = nullptr;
  if (state.compare_exchange_strong(seen, Busy(), std::memory_order_acquire)) {
    Copy(block, out);
    state.store(Taken(), std::memory_order_release);
    return;
  }
  while ((seen = state.load(std::memory_order_acquire)) == Busy()) std::this_thread::yield();
  if (seen == nullptr) return Take(block, out);  // the other thread's copy failed
  CHECK_MSG(seen != Taken(), "a block of rows was read twice or is not part of the view");
  std::copy_n(seen, bytes, out);
  state.store(Taken(), std::memory_order_release);
  delete[] seen;
  Hold(-bytes);
}

const std::byte* CopyOnWrite::Buffered(int64_t block) {
  if (block != buffered_block_) {
    buffer_.resize(static_cast<size_t>(rows_per_block_ * row_bytes_));
    Take(block, buffer_.data());
    buffered_block_ = block;
  }
  return buffer_.data();
}

void CopyOnWrite::ReadNext(std::span<std::byte> out) {
  const int64_t block_bytes = rows_per_block_ * row_bytes_;
  std::byte* to = out.data();
  for (std::byte* const end = to + out.size(); to < end;) {
    const int64_t block = next_byte_ / block_bytes, first = next_byte_ % block_bytes;
    CHECK_MSG(block < static_cast<int64_t>(blocks_.size()), "read past the last row");
    const int64_t whole = RowsOf(block) * row_bytes_, n = std::min(whole - first, end - to);
    if (n == whole) {
      Take(block, to);
    } else {
      std::copy_n(Buffered(block) + first, n, to);
    }
    next_byte_ += n;
    to += n;
  }
}

void CopyOnWrite::ReadNext(std::span<const int32_t> rows, std::span<std::byte> out) {
  std::byte* to = out.data();
  for (std::byte* const end = to + out.size(); to < end;) {
    const int64_t row = rows[static_cast<size_t>(next_byte_ / row_bytes_)];
    const int64_t first = next_byte_ % row_bytes_, n = std::min(row_bytes_ - first, end - to);
    const std::byte* bytes = Buffered(row / rows_per_block_) + row % rows_per_block_ * row_bytes_;
    std::copy_n(bytes + first, n, to);
    next_byte_ += n;
    to += n;
  }
}

}  // namespace renzan
