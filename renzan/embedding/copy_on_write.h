#pragma once

// A snapshot of the rows of an array that is readable while training changes them. Nothing is
// copied up front: a block of rows is copied by whichever comes first, the writer that is about to
// change it or the reader. Unlike fork() it copies no page tables, causes no page faults, and works
// with communication libraries that forbid forking.
//
// One thread reads, each row once and in ascending order; any number of threads write, each calling
// BeforeWrite() before it changes a row. The array must outlive this object, and this object must
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
  // values [num_rows, width]. With `only`, no other rows will be read.
  CopyOnWrite(const float* values, int64_t num_rows, int64_t width, const RowSet* only = nullptr);
  ~CopyOnWrite();
  CopyOnWrite(const CopyOnWrite&) = delete;
  CopyOnWrite& operator=(const CopyOnWrite&) = delete;

  // Call it before `row` changes. Waits for at most one block's copy if another thread is copying
  // this row's block.
  void BeforeWrite(int64_t row) {
    const float* state =
        blocks_[static_cast<size_t>(row / rows_per_block_)].load(std::memory_order_acquire);
    if (state == nullptr || state == Busy()) Preserve(row / rows_per_block_);
  }

  // Reads the next snapshot values, continuing after the previous call: of all rows, or of `rows`
  // (the complete set to be read, the same in every call).
  void ReadNext(std::span<float> out);
  void ReadNext(std::span<const int32_t> rows, std::span<float> out);

  // Blocks that writers have copied so far, for benchmarks.
  int64_t blocks_copied() const { return copied_.load(std::memory_order_relaxed); }

 private:
  // State of a block: pending (null), being copied (Busy), copied by a writer (address of the
  // copy), or Taken: already read, or never to be read.
  static float* Busy() { return reinterpret_cast<float*>(uintptr_t{1}); }
  static float* Taken() { return reinterpret_cast<float*>(uintptr_t{2}); }

  void Preserve(int64_t block);
  // Copies the snapshot of the block [its rows, width] to `out` and marks it taken.
  void Take(int64_t block, float* out);
  int64_t RowsOf(int64_t block) const;
  // The snapshot values of the block, in buffer_.
  const float* Buffered(int64_t block);

  const float* values_;
  int64_t num_rows_, width_, rows_per_block_;
  std::vector<std::atomic<float*>> blocks_;
  std::atomic<int64_t> copied_{0};
  // Used by the reader only.
  int64_t next_value_ = 0;  // index among the values to be read
  int64_t buffered_block_ = -1;
  std::vector<float> buffer_;
};

}  // namespace renzan
