#pragma once

// The dot interaction's working memory, one per thread, for as many samples as a vector has lanes.
// All arrays are of vectors: one value of each of the samples.

#include <cstddef>
#include <cstdint>

#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

struct DotInteractionScratch {
  float* x;      // [f·dim]: the samples' vectors
  float* dx;     // [f·dim]
  float* out;    // [width]: their row of the output, or its gradient
  float* pairs;  // [f, f]: the gradient of all products
  float* strip;  // [4, f]: some columns of x

  // Valid until the next call by this thread.
  static DotInteractionScratch OfThisThread(int64_t f, int64_t dim, int64_t width, int64_t lanes) {
    // Blocks of columns are read and written whole, and the last sums read values that nobody uses.
    constexpr int64_t kPadding = 32;
    thread_local AlignedBuffer buffer;
    const int64_t x_size = (f * dim + kPadding) * lanes, out_size = (width + kPadding) * lanes;
    const size_t size = static_cast<size_t>(2 * x_size + out_size + f * (f + 4) * lanes);
    if (buffer.size() < size) buffer = AlignedBuffer(size);
    float* const x = buffer.data();
    float* const pairs = x + 2 * x_size + out_size;
    return {.x = x,
            .dx = x + x_size,
            .out = x + 2 * x_size,
            .pairs = pairs,
            .strip = pairs + f * f * lanes};
  }
};

}  // namespace renzan
