#include "renzan/tensor/aligned_buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr size_t kHugePage = size_t{1} << 21, kCacheLine = 64;
constexpr size_t kLeastOwnPage = kHugePage / 2;  // smaller arrays share pages

size_t RoundUp(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Faults in the pages of a fresh mapping, which are zero. False if there is no memory.
bool Populate(std::byte* memory, size_t bytes) {
  if (::madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  std::memset(memory, 0, bytes);  // kernels before 5.14
  return true;
}

[[noreturn]] void FailTooLarge(size_t bytes) {
  Fail(ErrorCode::kOsError, "cannot allocate {} MiB: use more workers or smaller tables",
       bytes >> 20);
}

// Zeroed memory in whole huge pages, freed with the last pointer into it. All pages are faulted in
// at once, so that a process that does not fit fails here rather than later.
std::shared_ptr<std::byte[]> HugePages(size_t bytes, ThreadPool* pool = nullptr) {
  bytes = RoundUp(bytes, kHugePage);
  const size_t mapped = bytes + kHugePage;  // room to align to a huge page
  void* const map =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) FailTooLarge(bytes);
  std::shared_ptr<void> owner(map, [mapped](void* p) { ::munmap(p, mapped); });
  auto* const memory =
      reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(map), kHugePage));
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  std::atomic<bool> populated = true;
  const auto populate = [&](int, size_t begin, size_t end) {
    if (!Populate(memory + begin * kHugePage, (end - begin) * kHugePage)) populated = false;
  };
  if (pool == nullptr) {
    populate(0, 0, bytes / kHugePage);
  } else {
    pool->ParallelRanges(bytes / kHugePage, populate);
  }
  if (!populated) FailTooLarge(bytes);
  return {memory, [owner](std::byte*) {}};
}

// The huge page that small arrays are allocated from.
struct SharedPage {
  std::mutex mutex;
  std::shared_ptr<std::byte[]> memory;
  size_t used = kHugePage;
};

std::shared_ptr<std::byte[]> Allocate(size_t bytes, ThreadPool* pool) {
  if (bytes >= kLeastOwnPage) return HugePages(bytes, pool);
  static SharedPage page;
  std::lock_guard lock(page.mutex);
  if (page.used + bytes > kHugePage) {
    page.memory = HugePages(kHugePage);
    page.used = 0;
  }
  std::byte* begin = page.memory.get() + page.used;
  page.used += RoundUp(bytes, kCacheLine);
  return {page.memory, begin};
}

}  // namespace

int64_t AlignedBuffer::MemoryFor(int64_t bytes) {
  const size_t size = static_cast<size_t>(bytes);
  return static_cast<int64_t>(RoundUp(size, size >= kLeastOwnPage ? kHugePage : kCacheLine));
}

AlignedBuffer::AlignedBuffer(size_t size, ThreadPool* pool) : size_(size) {
  if (size == 0) return;
  const std::shared_ptr<std::byte[]> memory = Allocate(size * sizeof(float), pool);
  data_ = {memory, reinterpret_cast<float*>(memory.get())};
}

}  // namespace renzan
