#include "renzan/storage/s3/download.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

void WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset, const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailErrno(errno, "cannot write to " + where);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

}  // namespace

void Download(Client& client, const Location& location, const Object& object, int fd,
              const std::string& where) {
  if (object.bytes == 0) return;
  // A full disk is noticed before anything is read, if nobody else fills it meanwhile.
  struct statvfs room {};
  if (::fstatvfs(fd, &room) == 0 &&
      static_cast<uint64_t>(room.f_bavail) * room.f_frsize < object.bytes)
    FailErrno(ENOSPC, fmt::format("cannot keep the {} bytes of {} in {}", object.bytes,
                                  location.Path(), where));
  const uint64_t ranges = (object.bytes + kRangeBytes - 1) / kRangeBytes;
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::stop_source stop;
  const auto work = [&] {
    std::vector<std::byte> buffer(std::min<uint64_t>(kRangeBytes, object.bytes));
    try {
      for (uint64_t range; (range = next++) < ranges;) {
        const uint64_t offset = range * kRangeBytes;
        const auto piece =
            std::span(buffer).first(std::min<uint64_t>(kRangeBytes, object.bytes - offset));
        client.GetRange(location, object.etag, offset, piece, stop.get_token());
        WriteAt(fd, piece, offset, where);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = ranges;
      stop.request_stop();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (uint64_t i = 1; i < std::min<uint64_t>(kRangesInFlight, ranges); ++i)
      threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace renzan::s3
