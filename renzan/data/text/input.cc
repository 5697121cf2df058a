#include "renzan/data/text/input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/data/text/store_stream.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr size_t kRawBufferBytes = 256 << 10;
constexpr int kMsBetweenStopPolls = 100;
constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

// The raw bytes of the file, with lookahead.
class RawFile {
 public:
  RawFile(const std::string& path, StopFunction stop)
      : name_(path == "-" ? "<stdin>" : path), stop_(std::move(stop)), buffer_(kRawBufferBytes) {
    if (IsInStore(path)) {
      store_.emplace(path);
      return;
    }
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    fd_ =
        path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) FailToRead(errno, name_);
  }
  ~RawFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  // The bytes not yet taken; refilled when empty. Empty at the end of the file.
  std::string_view Peek() {
    if (begin_ == end_) Refill(0);
    return {buffer_.data() + begin_, end_ - begin_};
  }
  // The same, with at least `bytes` of them unless the file ends before.
  std::string_view PeekAtLeast(size_t bytes) {
    while (end_ - begin_ < bytes && Refill(end_ - begin_)) {
    }
    return {buffer_.data() + begin_, end_ - begin_};
  }
  void Take(size_t bytes) {
    begin_ += bytes;
    taken_ += bytes;
  }

  const std::string& name() const { return name_; }
  uint64_t taken() const { return taken_; }

 private:
  // Reads more after the `kept` bytes.
  bool Refill(size_t kept) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
    begin_ = 0;
    end_ = kept;
    for (;;) {
      ThrowIfStopped(stop_);
      if (store_) {
        const size_t got = store_->Read(buffer_.data() + end_, buffer_.size() - end_);
        end_ += got;
        return got > 0;
      }
      if (!InputReady()) continue;
      const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
      if (got >= 0) {
        end_ += static_cast<size_t>(got);
        return got > 0;
      }
      if (errno != EINTR && errno != EAGAIN) FailToRead(errno, name_);
    }
  }

  // Waits a moment for input. A read would wait until there is some, and not notice a stop request
  // that came just before it.
  bool InputReady() const {
    pollfd input{fd_, POLLIN, 0};
    const int ready = ::poll(&input, 1, kMsBetweenStopPolls);
    return ready > 0 || (ready < 0 && errno != EINTR);  // read() reports what is wrong
  }

  std::string name_;
  StopFunction stop_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t taken_ = 0;
  std::optional<StoreStream> store_;  // for a file in a store; otherwise fd_
  int fd_ = -1;
};

[[noreturn]] void FailTruncated(const RawFile& file, const char* format) {
  Fail(ErrorCode::kData,
       "{}: the {} data ends early: the file is truncated after {} bytes; fetch it again",
       file.name(), format, file.taken());
}

class PlainReader : public ByteReader {
 public:
  explicit PlainReader(std::unique_ptr<RawFile> file) : file_(std::move(file)) {}

  size_t Read(char* out, size_t bytes) override {
    const std::string_view ready = file_->Peek();
    const size_t count = std::min(bytes, ready.size());
    std::memcpy(out, ready.data(), count);
    file_->Take(count);
    return count;
  }
  uint64_t raw_bytes() const override { return file_->taken(); }

 private:
  std::unique_ptr<RawFile> file_;
};

class GzipReader : public ByteReader {
 public:
  explicit GzipReader(std::unique_ptr<RawFile> file) : file_(std::move(file)) {
    CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK);  // 16: gzip, with its checksum
  }
  ~GzipReader() override { inflateEnd(&stream_); }

  size_t Read(char* out, size_t bytes) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(bytes, 1 << 30));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      const std::string_view in = file_->Peek();
      if (in.empty()) {
        if (inside_member_) FailTruncated(*file_, "gzip");
        return 0;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      inside_member_ = true;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      file_->Take(in.size() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        // A .gz file may be several members one after the other.
        inside_member_ = false;
        inflateReset(&stream_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        Fail(ErrorCode::kData, "{}: corrupt gzip data near byte {}: {}; fetch the file again",
             file_->name(), file_->taken(), stream_.msg != nullptr ? stream_.msg : "unknown error");
      }
    }
    return wanted - stream_.avail_out;
  }
  uint64_t raw_bytes() const override { return file_->taken(); }

 private:
  std::unique_ptr<RawFile> file_;
  z_stream stream_{};
  bool inside_member_ = false;
};

class ZstdReader : public ByteReader {
 public:
  explicit ZstdReader(std::unique_ptr<RawFile> file)
      : file_(std::move(file)), stream_(ZSTD_createDStream()) {
    CHECK(stream_ != nullptr);
  }
  ~ZstdReader() override { ZSTD_freeDStream(stream_); }

  size_t Read(char* out, size_t bytes) override {
    ZSTD_outBuffer output{out, bytes, 0};
    while (output.pos == 0) {
      const std::string_view in = file_->Peek();
      // The decoder may still hold text after the last byte has been taken.
      if (in.empty() && frame_done_) return 0;
      ZSTD_inBuffer input{in.data(), in.size(), 0};
      const size_t result = ZSTD_decompressStream(stream_, &output, &input);
      file_->Take(input.pos);
      if (ZSTD_isError(result) != 0)
        Fail(ErrorCode::kData, "{}: corrupt zstd data near byte {}: {}; fetch the file again",
             file_->name(), file_->taken(), ZSTD_getErrorName(result));
      frame_done_ = result == 0;
      if (in.empty() && output.pos == 0) FailTruncated(*file_, "zstd");
    }
    return output.pos;
  }
  uint64_t raw_bytes() const override { return file_->taken(); }

 private:
  std::unique_ptr<RawFile> file_;
  ZSTD_DStream* stream_;
  bool frame_done_ = false;
};

}  // namespace

void ThrowIfStopped(const StopFunction& stop) {
  if (stop && stop())
    Fail(ErrorCode::kTempFail,
         "stopped on request; nothing was written, run it again to start over");
}

std::unique_ptr<ByteReader> OpenInput(const std::string& path, StopFunction stop) {
  auto file = std::make_unique<RawFile>(path, std::move(stop));
  const std::string_view start = file->PeekAtLeast(kZstdMagic.size());
  if (start.starts_with(kGzipMagic)) return std::make_unique<GzipReader>(std::move(file));
  if (start.starts_with(kZstdMagic)) return std::make_unique<ZstdReader>(std::move(file));
  for (const char* suffix : {".gz", ".zst"})
    if (path.ends_with(suffix))
      Fail(ErrorCode::kData, "{}: {}; fetch it again or rename it", path,
           start.empty() ? "the file is empty"
                         : fmt::format("not a {} file despite its name", suffix));
  return std::make_unique<PlainReader>(std::move(file));
}

}  // namespace renzan
