#include "renzan/base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
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

// Zeroed memory in whole huge pages, freed with the last pointer into it.
std::shared_ptr<std::byte[]> HugePages(size_t bytes) {
  bytes = RoundUp(bytes, kHugePage);
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes));
  if (memory == nullptr)
    Fail(ErrorCode::kOsError, "cannot allocate {} MiB: use more workers or smaller tables",
         bytes >> 20);
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* p) { std::free(p); }};
}

// The huge page that small arrays are being taken from.
struct SharedPage {
  std::mutex mutex;
  std::shared_ptr<std::byte[]> memory;
  size_t used = kHugePage;
};

std::shared_ptr<std::byte[]> Allocate(size_t bytes) {
  if (bytes >= kLeastOwnPage) return HugePages(bytes);
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

AlignedBuffer::AlignedBuffer(size_t size) : size_(size) {
  if (size == 0) return;
  const std::shared_ptr<std::byte[]> memory = Allocate(size * sizeof(float));
  data_ = {memory, reinterpret_cast<float*>(memory.get())};
}

}  // namespace renzan
