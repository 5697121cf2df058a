#pragma once

// The dot interaction's working memory for one sample, of which every thread has its own. All
// arrays are padded, so that the kernels may read and write whole vectors and blocks of 8 rows.

#include <cstdint>

#include "renzan/base/aligned_buffer.h"

namespace renzan {

inline int64_t RoundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

struct Scratch {
  int64_t x_stride, f_stride;  // between rows
  float* x;                    // [f, dim]: the sample's vectors
  float* dx;                   // [f, dim]
  float* transposed;           // [max(f, dim), f]
  float* products;             // [f, f]
  float* row;                  // the sample's row of the output
};

// Valid until the next call by this thread.
inline Scratch ScratchOfThisThread(int64_t f, int64_t dim) {
  thread_local AlignedBuffer buffer;
  Scratch scratch{.x_stride = RoundUp(dim, 16), .f_stride = RoundUp(f, 16)};
  const int64_t x_size = RoundUp(f, 8) * scratch.x_stride;
  const int64_t transposed_size = RoundUp(std::max(f, dim), 8) * scratch.f_stride;
  const int64_t products_size = RoundUp(f, 8) * scratch.f_stride;
  const int64_t row_size = RoundUp(dim + f * f / 2 + 32, 16);
  const size_t size = static_cast<size_t>(2 * x_size + transposed_size + products_size + row_size);
  if (buffer.size() < size) buffer = AlignedBuffer(size);
  scratch.x = buffer.data();
  scratch.dx = scratch.x + x_size;
  scratch.transposed = scratch.dx + x_size;
  scratch.products = scratch.transposed + transposed_size;
  scratch.row = scratch.products + products_size;
  return scratch;
}

}  // namespace renzan
