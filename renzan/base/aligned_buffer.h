#pragma once

// A zeroed, non-copyable array of floats aligned to a cache line. Large arrays ask the kernel for
// huge pages: embedding rows are read at random, and a page walk would cost more than the row
// itself.

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "renzan/base/error.h"

namespace renzan {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size) : size_(size) {
    constexpr size_t kHuge = size_t{1} << 21;
    const size_t alignment = size * sizeof(float) >= kHuge ? kHuge : 64;
    const size_t bytes = (size * sizeof(float) + alignment - 1) / alignment * alignment;
    if (bytes == 0) return;
    data_.reset(static_cast<float*>(std::aligned_alloc(alignment, bytes)));
    if (!data_)
      Fail(ErrorCode::kOsError, "cannot allocate {} MiB: use more workers or smaller tables",
           bytes >> 20);
    if (alignment == kHuge) ::madvise(data_.get(), bytes, MADV_HUGEPAGE);
    std::memset(data_.get(), 0, bytes);
  }

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  size_t size() const { return size_; }
  float& operator[](size_t i) { return data_.get()[i]; }
  const float& operator[](size_t i) const { return data_.get()[i]; }
  std::span<float> span() { return {data(), size_}; }
  std::span<const float> span() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float[], Free> data_;
  size_t size_ = 0;
};

}  // namespace renzan
