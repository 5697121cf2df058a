#pragma once

// The working memory of dot_interaction_tiles.cc, one per thread.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

struct TileScratch {
  // A line has 16 lanes.
  struct Slot {
    float* a;      // [32] lines: the left operand
    float* b;      // [32] lines: the right one
    float* c;      // [64] lines: the products
    float* pairs;  // [32] lines
    float* row;    // of the output or its gradient, then 32 values that nobody reads
  };
  // One stage of the work fills one slot while the next stage reads the other.
  Slot slots[2];
  // Where half h of vector min(i, f - 1) begins within a sample, at [h, i], for 32 values of i.
  std::vector<int64_t> halves;
  // Where the halves of C [1 or 2, 32 vectors] begin, vector after vector. If their number is odd,
  // a half of zeros follows.
  std::vector<int64_t> sums;

  const Slot& slot(int64_t i) const { return slots[i % 2]; }
  const int64_t* half(int64_t h) const { return halves.data() + h * kVectors; }

  // Valid until the next call by this thread. The operands are zero, and so are `pairs`.
  static const TileScratch& OfThisThread(int64_t f, int64_t dim, int64_t block_stride) {
    thread_local TileScratch scratch;
    scratch.SetPointers(f, dim);
    scratch.SetOffsets(f, dim / 16, block_stride);
    return scratch;
  }

 private:
  static constexpr int64_t kLine = 16, kVectors = 32;

  void SetPointers(int64_t f, int64_t dim) {
    constexpr int64_t kOperand = kVectors * kLine;
    const int64_t row = ((dim + 31) / 32 + kVectors / 2 + 2) * kLine;  // all pairs, and two lines
    const size_t size = static_cast<size_t>(2 * (5 * kOperand + row));
    if (buffer_.size() < size) buffer_ = AlignedBuffer(size);
    float* next = buffer_.data();
    const auto take = [&](int64_t lanes) { return (next += lanes) - lanes; };
    for (Slot& slot : slots) {
      slot = {.a = take(kOperand),
              .b = take(kOperand),
              .c = take(2 * kOperand),
              .pairs = take(kOperand),
              .row = take(row)};
      for (float* zeros : {slot.a, slot.b, slot.pairs}) std::fill_n(zeros, kOperand, 0.0f);
      std::fill_n(slot.c + f * kLine, kLine, 0.0f);  // a row that no tile has if it is read
    }
  }

  void SetOffsets(int64_t f, int64_t of_vector, int64_t block_stride) {
    halves.clear();
    for (int64_t h = 0; h < of_vector; ++h) {
      for (int64_t i = 0; i < kVectors; ++i) {
        const int64_t half = std::min(i, f - 1) * of_vector + h;
        halves.push_back(half / 2 * block_stride + half % 2 * (kLine / 2));
      }
    }
    const int64_t of_part = std::min<int64_t>(of_vector, 2);
    sums.clear();
    for (int64_t i = 0; i < f; ++i)
      for (int64_t h = 0; h < of_part; ++h) sums.push_back((h * kVectors + i) * kLine);
    if (sums.size() % 2 != 0) sums.push_back(f * kLine);
  }

  AlignedBuffer buffer_;
};

}  // namespace renzan
