#pragma once

// The rows of an array as they were at one moment, readable while training changes them. Nothing is
// copied up front: whoever comes first to a block of rows, the writer that is about to change it or
// the reader, takes it. Compared with fork() it needs no page table of the whole process, no page
// faults, and works beside communication libraries that forbid forking.
//
// One thread reads, each row once and in ascending order; any number of threads write rows, each
// announcing a row before it changes it. The array must outlive this object, and this object must
// not be destroyed while a thread reads or writes.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "renzan/embedding/row_set.h"

namespace renzan {

class CopyOnWrite {
 public:
  // values [num_rows, width]. With `only`, rows outside of it will never be read.
  CopyOnWrite(const float* values, int64_t num_rows, int64_t width, const RowSet* only = nullptr);
  ~CopyOnWrite();
  CopyOnWrite(const CopyOnWrite&) = delete;
  CopyOnWrite& operator=(const CopyOnWrite&) = delete;

  // To be called before `row` changes. Waits, for the time of one block's copy, while the reader or
  // another writer is at this row's block.
  void BeforeWrite(int64_t row) {
    const float* state =
        blocks_[static_cast<size_t>(row / rows_per_block_)].load(std::memory_order_acquire);
    if (state == nullptr || state == Busy()) Preserve(row / rows_per_block_);
  }

  // The next values as they were, continuing after the last call's: of all rows, or of those of
  // `rows` (all that will ever be read, the same in every call).
  void ReadNext(std::span<float> out);
  void ReadNext(std::span<const int32_t> rows, std::span<float> out);

  // Blocks that a writer had to copy so far, for measurements.
  int64_t blocks_copied() const { return copied_.load(std::memory_order_relaxed); }

 private:
  // A block is: pending (null), being copied (Busy), a copy that a writer made (its address), or
  // taken: read, or never to be read.
  static float* Busy() { return reinterpret_cast<float*>(uintptr_t{1}); }
  static float* Taken() { return reinterpret_cast<float*>(uintptr_t{2}); }

  void Preserve(int64_t block);
  // Copies the block [rows of it, width] to `out` as it was, and gives it up.
  void Take(int64_t block, float* out);
  int64_t RowsOf(int64_t block) const;
  // The block's values as they were, in buffer_.
  const float* Buffered(int64_t block);

  const float* values_;
  int64_t num_rows_, width_, rows_per_block_;
  std::vector<std::atomic<float*>> blocks_;
  std::atomic<int64_t> copied_{0};
  // The reader's.
  int64_t next_value_ = 0;  // among those to be read
  int64_t buffered_block_ = -1;
  std::vector<float> buffer_;
};

}  // namespace renzan
