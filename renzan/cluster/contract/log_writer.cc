#include "renzan/cluster/contract/log_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

// In one block, which is written at once: readers never see a part.
std::string TextOf(const DroppedHead& head) {
  return fmt::format("{:>20} lines {:>20} bytes\n", head.lines, head.bytes);
}

int OpenToRead(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

DroppedHead SizeOf(const std::string& path) {
  DroppedHead size;
  const int fd = OpenToRead(path);
  if (fd < 0) return size;
  std::vector<char> block(1 << 20);
  for (ssize_t got; (got = read(fd, block.data(), block.size())) > 0; size.bytes += got)
    size.lines += std::count(block.data(), block.data() + got, '\n');
  close(fd);
  return size;
}

}  // namespace

std::string DroppedHeadFile(const std::string& path) { return path + ".dropped"; }

std::optional<DroppedHead> ParseDroppedHead(std::string_view text) {
  long long lines = 0, bytes = 0;
  if (std::sscanf(std::string(text).c_str(), "%20lld lines %20lld bytes", &lines, &bytes) != 2 ||
      lines < 0 || bytes < 0)
    return std::nullopt;
  return DroppedHead{lines, bytes};
}

LogWriter::LogWriter(std::string path, int64_t max_bytes, int files, uid_t uid, gid_t gid)
    : path_(std::move(path)),
      max_bytes_(std::max<int64_t>(max_bytes, 1)),
      files_(std::max(files, 1)),
      uid_(uid),
      gid_(gid) {
  Open();
  // An earlier process may have written to the log.
  std::array<char, 128> text;
  const int fd = OpenToRead(DroppedHeadFile(path_));
  if (fd < 0) return;
  if (const ssize_t got = read(fd, text.data(), text.size()); got > 0)
    head_ = ParseDroppedHead({text.data(), static_cast<size_t>(got)}).value_or(DroppedHead());
  close(fd);
}

LogWriter::LogWriter(LogWriter&& other) noexcept
    : path_(std::move(other.path_)),
      max_bytes_(other.max_bytes_),
      files_(other.files_),
      uid_(other.uid_),
      gid_(other.gid_),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      dropped_bytes_(other.dropped_bytes_),
      head_(other.head_),
      unreported_bytes_(std::exchange(other.unreported_bytes_, 0)),
      at_line_start_(other.at_line_start_),
      error_(other.error_) {}

LogWriter::~LogWriter() {
  if (unreported_bytes_ > 0) ReportGap();
  Close();
}

bool LogWriter::Open() {
  struct stat info {};
  // Somebody has removed the file: what follows goes to a new one.
  if (fd_ >= 0 && fstat(fd_, &info) == 0 && info.st_nlink == 0) Close();
  if (fd_ >= 0) return true;
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    error_ = errno;
    return false;
  }
  // If this fails, only the daemon can read the log.
  if (geteuid() == 0 && fchown(fd_, uid_, gid_) != 0) error_ = errno;
  size_ = fstat(fd_, &info) == 0 ? info.st_size : 0;
  return true;
}

void LogWriter::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

bool LogWriter::Rotate() {
  Close();
  const auto name = [&](int age) { return age == 0 ? path_ : fmt::format("{}.{}", path_, age); };
  const DroppedHead oldest = SizeOf(name(files_ - 1));
  // Overwrites the oldest file. Errors of older files (ENOENT) do not matter.
  for (int age = files_ - 1; age > 1; --age) rename(name(age - 1).c_str(), name(age).c_str());
  const int done = files_ > 1 ? rename(path_.c_str(), name(1).c_str()) : unlink(path_.c_str());
  if (done != 0 && errno != ENOENT) {
    error_ = errno;
    return false;
  }
  size_ = 0;
  Open();
  if (oldest.bytes > 0) NoteDropped(oldest);
  return true;
}

void LogWriter::NoteDropped(const DroppedHead& more) {
  head_.lines += more.lines;
  head_.bytes += more.bytes;
  const int fd = open(DroppedHeadFile(path_).c_str(),
                      O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0) return;  // the next time says it
  if (geteuid() == 0 && fchown(fd, uid_, gid_) != 0) error_ = errno;
  const std::string text = TextOf(head_);
  if (pwrite(fd, text.data(), text.size(), 0) < 0) error_ = errno;
  close(fd);
}

std::string_view LogWriter::PartForThisFile(std::string_view text) const {
  const auto room = static_cast<size_t>(std::max<int64_t>(max_bytes_ - size_, 0));
  if (text.size() <= room) return text;
  if (room == 0) return {};
  const size_t line_end = text.rfind('\n', room - 1);
  if (line_end != std::string_view::npos) return text.substr(0, line_end + 1);
  if (at_line_start_ && size_ > 0) return {};
  return text.substr(0, room);
}

void LogWriter::Write(std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = PartForThisFile(text);
    if (part.empty()) {
      if (Rotate()) continue;
      return Drop(text.size());
    }
    Append(part);
    text.remove_prefix(part.size());
  }
}

void LogWriter::Drop(size_t bytes) {
  dropped_bytes_ += static_cast<int64_t>(bytes);
  unreported_bytes_ += static_cast<int64_t>(bytes);
}

bool LogWriter::ReportGap() {
  const std::string line =
      fmt::format("{}[renzan: {} bytes of output were lost here: {}]\n", at_line_start_ ? "" : "\n",
                  unreported_bytes_, std::strerror(error_));
  if (!Open()) return false;
  const ssize_t wrote = write(fd_, line.data(), line.size());
  if (wrote > 0) size_ += wrote;
  if (wrote == static_cast<ssize_t>(line.size())) {
    unreported_bytes_ = 0;
    at_line_start_ = true;
    return true;
  }
  // Remove an incomplete line.
  if (wrote > 0 && ftruncate(fd_, size_ - wrote) == 0) size_ -= wrote;
  return false;
}

void LogWriter::Append(std::string_view text) {
  if (!Open() || (unreported_bytes_ > 0 && !ReportGap())) return Drop(text.size());
  while (!text.empty()) {
    const ssize_t wrote = write(fd_, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      error_ = wrote < 0 ? errno : EIO;
      return Drop(text.size());
    }
    size_ += wrote;
    at_line_start_ = text[static_cast<size_t>(wrote) - 1] == '\n';
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace renzan::cluster
