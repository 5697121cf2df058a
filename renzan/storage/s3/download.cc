#include "renzan/storage/s3/download.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

constexpr uint64_t kPieceBytes = 4 << 20;

void WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset, const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailErrno(errno, "cannot write to " + where);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

// Writes a range of the object to the file as it comes, in pieces.
class RangeWriter {
 public:
  RangeWriter(int fd, uint64_t range_bytes, std::mutex* writing, const std::string& where)
      : fd_(fd), writing_(*writing), where_(where), buffer_(std::min(kPieceBytes, range_bytes)) {}

  // The range [offset, offset + bytes) comes next.
  void Begin(uint64_t offset, uint64_t bytes) {
    offset_ = offset;
    bytes_ = bytes;
  }

  void Take(uint64_t at, std::span<const std::byte> bytes) {
    if (at == 0) held_ = 0;  // what a failed attempt has left
    while (!bytes.empty()) {
      const size_t count = std::min(bytes.size(), buffer_.size() - held_);
      std::memcpy(&buffer_[held_], bytes.data(), count);
      bytes = bytes.subspan(count);
      held_ += count;
      at += count;
      if (held_ == buffer_.size() || at == bytes_) Write(offset_ + at - held_);
    }
  }

 private:
  void Write(uint64_t offset) {
    // The kernel lets one thread write to a file at a time, and the others spin meanwhile.
    const std::lock_guard lock(writing_);
    WriteAt(fd_, std::span(buffer_).first(held_), offset, where_);
    held_ = 0;
  }

  const int fd_;
  std::mutex& writing_;
  const std::string& where_;
  std::vector<std::byte> buffer_;
  uint64_t offset_ = 0, bytes_ = 0;
  size_t held_ = 0;  // in the buffer
};

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
  const uint64_t range_bytes =
      std::clamp(object.bytes / (4 * kRangesInFlight), kMinRangeBytes, kMaxRangeBytes);
  const uint64_t ranges = (object.bytes + range_bytes - 1) / range_bytes;
  std::atomic<uint64_t> next{0};
  std::mutex mutex, writing;
  std::exception_ptr failure;
  std::stop_source stop;
  const auto work = [&] {
    try {
      RangeWriter writer(fd, std::min(range_bytes, object.bytes), &writing, where);
      for (uint64_t range; (range = next++) < ranges;) {
        const uint64_t offset = range * range_bytes;
        const uint64_t bytes = std::min(range_bytes, object.bytes - offset);
        writer.Begin(offset, bytes);
        client.StreamRange(
            location, object.etag, offset, bytes,
            [&](uint64_t at, std::span<const std::byte> part) {
              // Another range has failed: nobody waits for the rest of this one.
              if (stop.stop_requested())
                Fail(ErrorCode::kTempFail, "reading {} was cancelled", location.Path());
              writer.Take(at, part);
            },
            stop.get_token());
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
