#pragma once

// How the gradients of a replicated shard reach every worker. Both ways give the same bits.
//
// If a table has far fewer rows than a batch has bags (at most a quarter with float32, fewer
// with narrower codecs), workers sum their own samples' gradients by row and reduce these sums like
// dense gradients (comm/tree_reduce.h): each sends two float32 arrays of the shard's size, however
// many workers there are. Otherwise each worker sends its samples' gradients to all others.

#include <cstdint>

#include "renzan/tensor/row_codec.h"

namespace renzan {

// Whether a shard [rows, columns] that several workers hold is reduced. Its sums must be clearly
// smaller than the gradients of a global batch, because they also have to be cleared and added.
// `bags`: of a global batch, in the table.
inline bool ReducesGradients(int64_t rows, int64_t columns, RowCodec wire, int64_t bags) {
  constexpr int64_t kArrays = 2, kMargin = 2;
  const int64_t sums = kArrays * rows * columns * static_cast<int64_t>(sizeof(float));
  return kMargin * sums <=
         bags * static_cast<int64_t>(EncodedRowBytes(wire, static_cast<size_t>(columns)));
}

}  // namespace renzan
