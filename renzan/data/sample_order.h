#pragma once

// The order in which an epoch visits the rows of a range: a keyed permutation, computed on the fly
// from (seed, epoch). It has no state and needs no memory, so any worker can compute any position.
//
// Blocks of consecutive rows are permuted, then rows within a window of permuted blocks: reads
// touch whole blocks on disk, and rows are mixed thoroughly within a window. The short block at the
// end of a range, if any, is always in the last window. Immutable, thread-safe.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace renzan {

struct ShuffleOptions {
  bool enabled = true;  // off: rows in stored order
  int64_t block_rows = 512;
  int64_t window_blocks = 128;
};

// A keyed permutation of [0, size): a Feistel network over the next power of two, cycle-walked
// until the result lies inside (J. Black, P. Rogaway, "Ciphers with arbitrary finite domains",
// 2002).
class KeyedPermutation {
 public:
  KeyedPermutation(uint64_t key, uint64_t tweak, int64_t size);
  int64_t operator()(int64_t index) const;
  // Replaces many by theirs, faster than one by one.
  void Apply(std::span<int64_t> indices) const;
  // Inverse()(operator()(index)) is index.
  int64_t Inverse(int64_t value) const;

 private:
  // For several values, whose draws do not wait for each other.
  template <size_t n>
  struct Values {
    uint64_t of[n];
  };
  // XORs `to` with the round's output for `half`.
  template <size_t n>
  void Mix(int round, const Values<n>& half, uint64_t mask, Values<n>* to) const;
  template <size_t n, bool kInverse>
  void Pass(Values<n>* values) const;
  template <bool kInverse>
  int64_t Walk(uint64_t value) const;

  uint64_t key_, tweak_;
  uint64_t size_;
  int left_bits_, right_bits_;
};

class SampleOrder {
 public:
  // The rows [begin, end) of a dataset.
  SampleOrder(uint64_t seed, int64_t epoch, int64_t begin, int64_t end,
              ShuffleOptions options = {});

  int64_t num_rows() const { return end_ - begin_; }
  // The row at `position` in [0, num_rows()): a bijection onto [begin, end).
  int64_t Row(int64_t position) const;
  // Appends the rows at positions [first, first + n), faster than one by one.
  void AppendRows(int64_t first, int64_t n, std::vector<int64_t>* rows) const;

  // Rows are mixed within windows of positions, [w * window_rows(), (w + 1) * window_rows()), whose
  // rows come from a few blocks: these are needed together, and when is known.
  int64_t window_rows() const { return options_.block_rows * options_.window_blocks; }
  int64_t num_windows() const { return (num_rows() + window_rows() - 1) / window_rows(); }
  // Blocks are numbered from `begin`; the last one may be short.
  int64_t num_blocks() const {
    return (num_rows() + options_.block_rows - 1) / options_.block_rows;
  }
  int64_t BlockOf(int64_t row) const { return (row - begin_) / options_.block_rows; }
  // The rows [begin, end) of a block.
  std::pair<int64_t, int64_t> RowsOfBlock(int64_t block) const;
  std::vector<int64_t> BlocksOfWindow(int64_t window) const;
  int64_t WindowOfBlock(int64_t block) const;

 private:
  // The block in slot s: rows are mixed as if all blocks came in permuted order.
  int64_t BlockOfSlot(int64_t slot) const {
    return slot < full_blocks_ ? block_order_(slot) : slot;  // the short one stays last
  }
  KeyedPermutation RowOrder(int64_t window) const;

  int64_t begin_, end_;
  ShuffleOptions options_;
  uint64_t row_key_;
  int64_t full_blocks_;
  KeyedPermutation block_order_;
};

}  // namespace renzan
