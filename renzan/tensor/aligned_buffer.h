#pragma once

// A zeroed, non-copyable array of floats aligned to a cache line, in huge pages where the kernel
// has them: a training step touches so much memory that page walks would take a tenth of its time.
// Arrays smaller than half a huge page share one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "renzan/base/thread_pool.h"

namespace renzan {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // With `pool`, all its threads fault in the memory: on a virtual machine whose host has yet to
  // provide it, this takes seconds. Throws kOsError if there is not enough.
  explicit AlignedBuffer(size_t size, ThreadPool* pool = nullptr);

  // The memory that an array of `bytes` takes.
  static int64_t MemoryFor(int64_t bytes);

  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  size_t size() const { return size_; }
  float& operator[](size_t i) { return data_.get()[i]; }
  const float& operator[](size_t i) const { return data_.get()[i]; }
  std::span<float> span() { return {data(), size_}; }
  std::span<const float> span() const { return {data(), size_}; }

 private:
  std::shared_ptr<float[]> data_;
  size_t size_ = 0;
};

}  // namespace renzan
