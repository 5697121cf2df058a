#pragma once

// A snapshot of the rows of an array that is readable while training changes them. Nothing is
// copied up front: a block of rows is copied by whichever comes first, the writer that is about to
// change it or the reader. Unlike fork() it copies no page tables, causes no page faults, and works
// with communication libraries that forbid forking.
//
// One thread reads, each row once and in ascending order; any number of threads write, each calling
// BeforeWrite() before it changes a row. This object must not be destroyed while a thread reads or
// writes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "renzan/embedding/row_set.h"

namespace renzan {

// Copies rows [first, first + n) of an array as they are now. Thread-safe for different rows.
using CopyRows = std::function<void(int64_t first, int64_t n, std::byte* out)>;

class CopyOnWrite {
 public:
  // `rows` copies from [num_rows, row_bytes]. With `only`, no other rows will be read. `held`
  // counts the bytes of copies that have not been read yet; it must outlive this object.
  CopyOnWrite(CopyRows rows, int64_t num_rows, int64_t row_bytes, const RowSet* only = nullptr,
              std::atomic<int64_t>* held = nullptr);
  ~CopyOnWrite();
  CopyOnWrite(const CopyOnWrite&) = delete;
  CopyOnWrite& operator=(const CopyOnWrite&) = delete;

  // Call it before `row` changes. Waits for at most one block's copy if another thread is copying
  // this row's block.
  void BeforeWrite(int64_t row) {
    const std::byte* state =
        blocks_[static_cast<size_t>(row / rows_per_block_)].load(std::memory_order_acquire);
    if (state == nullptr || state == Busy()) Preserve(row / rows_per_block_);
  }

  // Reads the next bytes of the snapshot, continuing after the previous call: of all rows, or of
  // `rows` (the complete set to be read, the same in every call).
  void ReadNext(std::span<std::byte> out);
  void ReadNext(std::span<const int32_t> rows, std::span<std::byte> out);

  // Blocks that writers have copied so far, for benchmarks.
  int64_t blocks_copied() const { return copied_.load(std::memory_order_relaxed); }

 private:
  // State of a block: pending (null), being copied (Busy), copied by a writer (address of the
  // copy), or Taken: already read, or never to be read.
  static std::byte* Busy() { return reinterpret_cast<std::byte*>(uintptr_t{1}); }
  static std::byte* Taken() { return reinterpret_cast<std::byte*>(uintptr_t{2}); }

  void Copy(int64_t block, std::byte* out);
  void Preserve(int64_t block);
  // Copies the snapshot of the block to `out` and marks it taken.
  void Take(int64_t block, std::byte* out);
  int64_t RowsOf(int64_t block) const;
  // The block as of the snapshot, in buffer_.
  const std::byte* Buffered(int64_t block);
  void Hold(int64_t bytes) {
    if (held_ != nullptr) held_->fetch_add(bytes, std::memory_order_relaxed);
  }

  CopyRows rows_;
  int64_t num_rows_, row_bytes_, rows_per_block_;
  std::vector<std::atomic<std::byte*>> blocks_;
  std::atomic<int64_t> copied_{0};
  std::atomic<int64_t>* held_;
  // Used by the reader only.
  int64_t next_byte_ = 0;  // position among the bytes to be read
  int64_t buffered_block_ = -1;
  std::vector<std::byte> buffer_;
};

}  // namespace renzan
