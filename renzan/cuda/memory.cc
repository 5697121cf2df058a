#include "renzan/cuda/memory.cuh"

#include "renzan/base/error.h"

namespace renzan::cuda {
namespace {

[[noreturn]] void FailWithoutDriver(const char* what) {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    Fail(ErrorCode::kConfig,
         "{}: this machine has no NVIDIA driver: install it, or use device: cpu", what);
  Fail(ErrorCode::kConfig,
       "{}: the NVIDIA driver is for CUDA {}.{}, but {}.{} is needed: install a newer one, or use "
       "device: cpu",
       what, driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

}  // namespace

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that it is not reported twice
  const char* reason = cudaGetErrorString(status);
  switch (status) {
    case cudaErrorMemoryAllocation:
      Fail(ErrorCode::kOsError,
           "{}: the GPU is out of memory: use a smaller training.batch_size, smaller tables "
           "or a GPU that no other program uses",
           what);
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      Fail(ErrorCode::kConfig, "{}: this machine has no such GPU ({}): use device: cpu", what,
           reason);
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      FailWithoutDriver(what);
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      Fail(ErrorCode::kConfig,
           "{}: this program was not built for this GPU ({}): build it with "
           "-DRENZAN_CUDA_ARCHITECTURES for it",
           what, reason);
    case cudaErrorDevicesUnavailable:
      Fail(ErrorCode::kUnavailable,
           "{}: the GPU cannot be used now ({}): another program may be using it", what, reason);
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorDeviceUninitialized:
    case cudaErrorContained:
    case cudaErrorUnknown:
      Fail(ErrorCode::kUnavailable,
           "{}: the GPU was lost ({}): a restarted run continues from its last checkpoint", what,
           reason);
    default:
      Fail(ErrorCode::kSoftware, "{}: {}", what, reason);
  }
}

void CheckLaunch(const char* kernel) { Check(cudaGetLastError(), kernel); }

void* DeviceSpace::Allocate(size_t bytes) {
  void* data = nullptr;
  Check(cudaMalloc(&data, bytes), "allocating memory of the GPU");
  // The memory is cleared on the default stream, for which other streams do not wait.
  Check(cudaMemset(data, 0, bytes), "clearing memory of the GPU");
  Check(cudaStreamSynchronize(nullptr), "clearing memory of the GPU");
  return data;
}

void DeviceSpace::Free(void* data) { cudaFree(data); }

void* PinnedSpace::Allocate(size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaMallocHost(&data, bytes);
  if (status == cudaErrorMemoryAllocation)
    Fail(ErrorCode::kOsError, "the host cannot lock {} bytes of memory", bytes);
  Check(status, "allocating page-locked memory");
  return data;
}

void PinnedSpace::Free(void* data) { cudaFreeHost(data); }

Stream::Stream() {
  Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
}
Stream::~Stream() { cudaStreamDestroy(stream_); }
void Stream::Synchronize() const { Check(cudaStreamSynchronize(stream_), "computing on the GPU"); }

Event::Event() {
  Check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
}
Event::~Event() { cudaEventDestroy(event_); }
void Event::Record(cudaStream_t stream) const {
  Check(cudaEventRecord(event_, stream), "recording an event");
}
void Event::Await(cudaStream_t stream) const {
  Check(cudaStreamWaitEvent(stream, event_, 0), "waiting for an event");
}
void Event::Synchronize() const { Check(cudaEventSynchronize(event_), "computing on the GPU"); }

void CopyToDevice(const void* host, size_t bytes, void* device, const Stream& stream) {
  Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream.get()),
        "copying to the GPU");
}
void CopyToHost(const void* device, size_t bytes, void* host, const Stream& stream) {
  Check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream.get()),
        "copying from the GPU");
}

}  // namespace renzan::cuda
