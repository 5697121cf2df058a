#pragma once

// TransposedGemm() of bfloat16 in AMX's order, summed over virtual workers block by block: the
// products of a block stay in the cache until they are added.

#include <span>

#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// The operands of one virtual worker's TransposedGemm(), in the layouts for tiles.
struct GradientOperands {
  BlockedMatrix left;   // Aᵀ [m, k] of bfloat16, k padded with zeros to a multiple of 32
  BlockedMatrix right;  // [k / 2, n]: lanes of rows 2i and 2i + 1 of B
  AlignedBuffer sums;   // [m]: the sums of A's columns, if requested

  // For A [k, m] and B [k, n].
  void Reserve(int64_t k, int64_t m, int64_t n);
  void Set(const BlockedMatrix& a, const BlockedMatrix& b, bool with_sums);
};

// Part of C: `rows` rows from `row` on, a multiple of 32, and `blocks` blocks of 16 columns from
// `block` on, an even number.
struct GradientBlock {
  int64_t row, rows, block, blocks;
};

// The largest number of blocks whose right operands stay in the cache with this many leaves of k
// samples.
int64_t CachedGradientBlocks(int64_t leaves, int64_t k);

// C [m, n], row-major: the sum of the leaves' products by a balanced binary tree over the leaves,
// whose number is a power of two. Writes only the given part.
void SumOfTransposedGemms(std::span<const GradientOperands* const> leaves,
                          const GradientBlock& part, float* c);

}  // namespace renzan
