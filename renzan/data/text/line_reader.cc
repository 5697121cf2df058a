#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/text/input.h"
#include "renzan/data/text/not_text.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
// Longer lines mean that the file is not text; reading on would only use up memory.
constexpr size_t kMaxLineBytes = 16 << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

LineReader::LineReader(std::vector<std::string> paths, StopFunction stop)
    : paths_(std::move(paths)), stop_(std::move(stop)), buffer_(kBufferBytes) {
  bool size_known = true;
  bool stdin_seen = false;
  for (const std::string& path : paths_) {
    struct stat info {};
    if (path == "-") {
      if (std::exchange(stdin_seen, true))
        Fail(ErrorCode::kUsage, "standard input (-) can be read only once");
      size_known = false;
    } else if (IsInStore(path)) {
      const size_t slash = path.rfind('/');
      const std::string name = path.substr(slash + 1);
      info.st_size = static_cast<off_t>(
          Storage::Of(path).Sizes(path.substr(0, slash), std::span(&name, 1))[0]);
    } else if (::stat(path.c_str(), &info) != 0) {
      FailToRead(errno, path);
    } else if (S_ISDIR(info.st_mode)) {
      Fail(ErrorCode::kNoInput, "cannot read {}: it is a directory; give the files in it", path);
    } else if (!S_ISREG(info.st_mode)) {
      size_known = false;
    }
    total_raw_bytes_ += static_cast<uint64_t>(info.st_size);
    names_.push_back(path == "-" ? "<stdin>" : path);
  }
  if (!size_known) total_raw_bytes_ = 0;
}

bool LineReader::OpenNextFile() {
  if (next_file_ == paths_.size()) return false;
  if (reader_) raw_bytes_before_ += reader_->raw_bytes();
  file_index_ = next_file_;
  reader_ = OpenInput(paths_[next_file_++], stop_);
  file_ended_ = false;
  line_number_ = 0;
  while (end_ - begin_ < kNotTextBytes && Fill()) {
  }
  FailUnlessText({buffer_.data() + begin_, end_ - begin_}, file());
  if (std::string_view(buffer_.data() + begin_, end_ - begin_).starts_with(kByteOrderMark))
    begin_ += kByteOrderMark.size();
  return true;
}

// Reads more after the unread bytes; false at the end of the file.
bool LineReader::Fill() {
  if (file_ended_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kMaxLineBytes)
      Fail(ErrorCode::kData, "{}:{}: the line is longer than {} MiB: is this a text file?", file(),
           line_number_ + 1, kMaxLineBytes >> 20);
    buffer_.resize(buffer_.size() * 2);
  }
  const size_t got = reader_->Read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  text_bytes_ += got;
  file_ended_ = got == 0;
  return !file_ended_;
}

bool LineReader::MoreInFile() { return begin_ < end_ || Fill(); }

bool LineReader::Next(std::string_view* line) {
  while (!MoreInFile())
    if (!OpenNextFile()) return false;
  size_t searched = 0;
  size_t length = 0, taken = 0;
  for (;;) {
    const void* found =
        std::memchr(buffer_.data() + begin_ + searched, '\n', end_ - begin_ - searched);
    if (found != nullptr) {
      length = static_cast<size_t>(static_cast<const char*>(found) - buffer_.data()) - begin_;
      taken = length + 1;
      break;
    }
    searched = end_ - begin_;
    if (!Fill()) {
      length = taken = searched;
      break;
    }
  }
  if (length > 0 && buffer_[begin_ + length - 1] == '\r') --length;
  *line = {buffer_.data() + begin_, length};
  begin_ += taken;
  ++line_number_;
  return true;
}

uint64_t LineReader::raw_bytes() const {
  return raw_bytes_before_ + (reader_ ? reader_->raw_bytes() : 0);
}

}  // namespace renzan
