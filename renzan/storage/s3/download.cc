#include "renzan/storage/s3/download.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/base/cpus.h"
#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;  // all pieces together fit into a CPU cache

void WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset, const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailErrno(errno, "cannot write to " + where);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

// Writes a range of the object to the file as it arrives, in pieces.
class RangeWriter {
 public:
  // `object_bytes`: the size of the whole object.
  RangeWriter(int fd, uint64_t object_bytes, std::mutex* writing, const std::string& where)
      : fd_(fd), writing_(*writing), where_(where), buffer_(std::min(kPieceBytes, object_bytes)) {}

  // The next bytes are the range [offset, offset + bytes).
  void Begin(uint64_t offset, uint64_t bytes) {
    offset_ = offset;
    bytes_ = bytes;
  }

  void Take(uint64_t at, std::span<const std::byte> bytes) {
    if (at == 0) held_ = 0;  // drops the rest of a failed attempt
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
    // The kernel lets only one thread at a time write to a file, and the others would spin
    // meanwhile.
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
  // Detects a full disk before anything is read, unless somebody else fills it meanwhile.
  struct statvfs room {};
  if (::fstatvfs(fd, &room) == 0 &&
      static_cast<uint64_t>(room.f_bavail) * room.f_frsize < object.bytes)
    FailErrno(ENOSPC, fmt::format("cannot keep a copy of {}, of {} bytes, in {} (set TMPDIR to a "
                                  "directory with more room)",
                                  location.Path(), object.bytes, where));
  const auto in_flight = static_cast<uint64_t>(
      std::clamp(2 * UsableCpus(ReadCpuBudget()), kFewestRangesInFlight, kMostRangesInFlight));
  std::mutex mutex, writing;
  uint64_t dealt = 0;  // bytes of the object already assigned to ranges
  // The next range. They get smaller towards the end, so that all connections finish at about the
  // same time.
  const auto deal = [&]() -> std::pair<uint64_t, uint64_t> {
    const std::lock_guard lock(mutex);
    const uint64_t left = object.bytes - dealt, offset = dealt;
    const uint64_t bytes =
        std::min(left, std::clamp(left / (4 * in_flight), kMinRangeBytes, kMaxRangeBytes));
    dealt += bytes;
    return {offset, bytes};
  };
  std::exception_ptr failure;
  std::stop_source stop;
  const auto work = [&] {
    try {
      RangeWriter writer(fd, object.bytes, &writing, where);
      for (auto [offset, bytes] = deal(); bytes > 0; std::tie(offset, bytes) = deal()) {
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
      dealt = object.bytes;
      stop.request_stop();
    }
  };
  {
    std::vector<std::jthread> threads;
    const uint64_t most_ranges = (object.bytes + kMinRangeBytes - 1) / kMinRangeBytes;
    for (uint64_t i = 1; i < std::min(in_flight, most_ranges); ++i) threads.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace renzan::s3
