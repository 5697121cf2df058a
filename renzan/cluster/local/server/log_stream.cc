#include "renzan/cluster/local/server/log_stream.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/local/untrusted_file.h"

namespace renzan::cluster::local {
namespace {

// Used when the kernel has no inotify watches left, and to notice the end of the job.
constexpr int kPollIntervalMs = 500;
constexpr const char* kGap =
    "[renzan: output was dropped here: the job writes it faster than it is read]\n";

bool SameFile(int a, int b) {
  struct stat first, second;
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

LogStream::LogStream(LogRequest request, std::function<std::optional<JobNow>()> job_now,
                     int client_fd, int stop_fd)
    : request_(std::move(request)),
      job_now_(std::move(job_now)),
      client_fd_(client_fd),
      stop_fd_(stop_fd),
      inotify_fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  OpenFiles();
  if (request_.tail >= 0)
    Tail(request_.tail);
  else
    SkipTo(request_.from);
  place_ = {.attempt = request_.attempt, .offset = files_.empty() ? 0 : files_.front().at};
}

int64_t LogStream::File::End() const {
  struct stat file;
  const off_t read = ::lseek(fd, 0, SEEK_CUR);
  return ::fstat(fd, &file) == 0 ? at + std::max<int64_t>(0, file.st_size - read) : at;
}

LogStream::~LogStream() {
  Close();
  if (inotify_fd_ >= 0) ::close(inotify_fd_);
}

void LogStream::Close() {
  for (const File& file : files_) ::close(file.fd);
  files_.clear();
}

std::string LogStream::NameOf(int rotated) const {
  const std::string name =
      fmt::format("{}/attempt-{}/worker-{}.log", request_.job, request_.attempt, request_.worker);
  return rotated == 0 ? name : fmt::format("{}.{}", name, rotated);
}

void LogStream::OpenFiles() {
  const std::string directory =
      fmt::format("{}/{}/attempt-{}", request_.jobs_dir, request_.job, request_.attempt);
  ::inotify_add_watch(inotify_fd_, directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  // Files may be dropped meanwhile: then the count may not be that of the files that were opened.
  constexpr int kTries = 5;
  for (int tries = 0; tries < kTries; ++tries) {
    Close();
    const std::optional<DroppedHead> dropped = Dropped();
    OpenRotated();
    if (files_.empty() || !dropped) return;
    files_.front().missing = fmt::format(
        "[renzan: the first {} of this output ({} bytes) were dropped: it was too long]\n",
        Counted(dropped->lines, "line"), dropped->bytes);
    if (Dropped() == dropped) return;
  }
}

std::optional<DroppedHead> LogStream::Dropped() const {
  constexpr size_t kMostBytes = 1024;
  const std::optional<std::string> text =
      ReadUntrusted(request_.jobs_dir, DroppedHeadFile(NameOf(0)), request_.owner, kMostBytes);
  return text ? ParseDroppedHead(*text) : std::nullopt;
}

// Appends the files that are newer than the last one in files_. Opens the newest first, so that a
// rotation meanwhile yields the same file twice instead of a gap.
void LogStream::OpenRotated() {
  std::deque<File> newer;
  bool reaches_known = false;
  for (int rotated = 0;; ++rotated) {
    const int fd = OpenUntrusted(request_.jobs_dir, NameOf(rotated), request_.owner);
    if (fd < 0) break;
    reaches_known = !files_.empty() && SameFile(fd, files_.back().fd);
    if (reaches_known || (!newer.empty() && SameFile(fd, newer.front().fd))) {
      ::close(fd);
      if (reaches_known) break;
      continue;
    }
    newer.push_front({.fd = fd, .missing = {}});
  }
  if (newer.empty()) return;
  if (!files_.empty() && !reaches_known) newer.front().missing = kGap;
  // Only the newest file of all grows.
  int64_t at = 0;
  if (reaches_known)
    at = files_.back().End();
  else if (const std::optional<DroppedHead> dropped = Dropped())
    at = dropped->bytes;
  for (File& file : newer) {
    file.at = at;
    at = file.End();
  }
  files_.insert(files_.end(), newer.begin(), newer.end());
}

// Skips all but the last lines. Counts line ends backwards, block by block.
void LogStream::Tail(int64_t lines) {
  std::array<char, 64 << 10> block;
  int64_t ends = 0;
  bool last_byte = true;  // a newline there does not begin another line
  for (size_t file = files_.size(); file-- > 0;) {
    const int fd = files_[file].fd;
    off_t end = ::lseek(fd, 0, SEEK_END);
    while (end > 0) {
      const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(block.size()));
      const ssize_t got = ::pread(fd, block.data(), end - begin, begin);
      for (ssize_t i = got; i-- > 0; last_byte = false) {
        if (block[i] != '\n' || (last_byte && lines > 0)) continue;
        if (++ends < std::max<int64_t>(lines, 1)) continue;
        files_[file].at += ::lseek(fd, lines == 0 ? end : begin + i + 1, SEEK_SET);
        for (; file > 0; --file) {
          ::close(files_.front().fd);
          files_.pop_front();
        }
        files_.front().missing.clear();
        return;
      }
      end = begin;
    }
    ::lseek(fd, 0, SEEK_SET);
  }
}

void LogStream::SkipTo(int64_t offset) {
  if (files_.empty() || offset == 0) return;
  if (offset < files_.front().at) {
    files_.front().missing = kGap;
    return;
  }
  while (files_.size() > 1 && files_.front().End() <= offset) {
    ::close(files_.front().fd);
    files_.pop_front();
  }
  File& file = files_.front();
  file.missing.clear();
  ::lseek(file.fd, offset - file.at, SEEK_SET);
  file.at = offset;
}

// False if the client has disconnected or the server must end.
bool LogStream::Wait() {
  std::array<pollfd, 3> fds = {
      {{inotify_fd_, POLLIN, 0}, {client_fd_, POLLRDHUP, 0}, {stop_fd_, POLLIN, 0}}};
  ::poll(fds.data(), fds.size(), kPollIntervalMs);
  std::array<char, 4096> events;
  while (::read(inotify_fd_, events.data(), events.size()) > 0) {
  }
  return fds[1].revents == 0 && fds[2].revents == 0;
}

size_t LogStream::Read(char* data, size_t max) {
  if (!request_.framed) return ReadText(data, max);
  CHECK(max > spec::kFrameHeadBytes);
  if (complete_) return 0;
  size_t got = 0;
  spec::FrameKind kind = spec::FrameKind::kOutput;
  if (std::exchange(begun_, true)) {
    got = ReadText(data + spec::kFrameHeadBytes, max - spec::kFrameHeadBytes);
    if (got == 0 && !ended_) return 0;
    complete_ = got == 0;
    if (complete_)
      kind = spec::FrameKind::kComplete;
    else if (is_remark_)
      kind = spec::FrameKind::kRemark;
  }
  spec::FrameHead(place_, kind, got).copy(data, spec::kFrameHeadBytes);
  return spec::kFrameHeadBytes + got;
}

// Sets place_ and is_remark_.
size_t LogStream::ReadText(char* data, size_t max) {
  for (;;) {
    while (!files_.empty()) {
      File& file = files_.front();
      place_ = {.attempt = request_.attempt, .offset = file.at};
      is_remark_ = !file.missing.empty();
      if (is_remark_) {
        const size_t part = file.missing.copy(data, max);
        file.missing.erase(0, part);
        return part;
      }
      const ssize_t got = ::read(file.fd, data, max);
      if (got > 0) {
        file.at += got;
        return static_cast<size_t>(got);
      }
      if (files_.size() == 1) break;
      ::close(file.fd);
      files_.pop_front();
    }
    if (!request_.follow) return 0;
    const size_t before = files_.size();
    OpenRotated();
    if (files_.size() > before) continue;
    // The output is complete only after the end was seen, so it is read once more.
    if (ended_) return 0;
    if (std::exchange(next_, false)) {
      ++request_.attempt;
      OpenFiles();
      continue;
    }
    const std::optional<JobNow> now = job_now_();
    if (!now) return 0;
    if (request_.later_attempts && now->attempts > request_.attempt + 1) {
      next_ = true;
    } else if (now->ended) {
      ended_ = true;
    } else if (!Wait()) {
      return 0;
    }
  }
}

}  // namespace renzan::cluster::local
