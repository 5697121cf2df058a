#pragma once

// Device memory, page-locked host memory, streams and events, each freed by its owner; and the one
// place where an error of the CUDA runtime becomes an Error. Not thread-safe.

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <utility>

namespace renzan::cuda {

// Throws unless `status` is cudaSuccess: kOsError for lack of memory; kConfig if there is no device
// or driver for this program; kUnavailable for a device that was lost or cannot be used now,
// because another attempt may succeed; otherwise kSoftware. `what`: "copying the parameters".
void Check(cudaError_t status, const char* what);
// Check() for the last launch.
void CheckLaunch(const char* kernel);

// Rounds up the size of an array that others follow in a piece of memory: each begins at a multiple
// of 256 bytes.
constexpr size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// A piece of memory that `Space` allocates and frees.
template <class Space>
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes)
      : data_(bytes > 0 ? Space::Allocate(bytes) : nullptr), bytes_(bytes) {}
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Memory() { Space::Free(data_); }

  size_t bytes() const { return bytes_; }
  // Reallocates if there is less memory; loses the contents.
  void Reserve(size_t bytes) {
    if (bytes_ < bytes) *this = Memory(bytes);
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// The device's memory, initially zero.
struct DeviceSpace {
  static void* Allocate(size_t bytes);
  static void Free(void* data);
};
using DeviceMemory = Memory<DeviceSpace>;

// The host's memory, which the device accesses directly.
struct PinnedSpace {
  static void* Allocate(size_t bytes);
  static void Free(void* data);
};
using PinnedMemory = Memory<PinnedSpace>;

class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  ~Stream();
  cudaStream_t get() const { return stream_; }
  void Synchronize() const;

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  Event(const Event&) = delete;
  ~Event();
  void Record(cudaStream_t stream) const;
  // Work given to the stream from now on begins after the recorded work.
  void Await(cudaStream_t stream) const;
  // Makes the host wait.
  void Synchronize() const;

 private:
  cudaEvent_t event_ = nullptr;
};

void CopyToDevice(const void* host, size_t bytes, void* device, const Stream& stream);
void CopyToHost(const void* device, size_t bytes, void* host, const Stream& stream);

}  // namespace renzan::cuda
