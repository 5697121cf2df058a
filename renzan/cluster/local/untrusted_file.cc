#include "renzan/cluster/local/untrusted_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace renzan::cluster::local {
namespace {

constexpr int kMaxEntries = 10'000;
constexpr int kMaxDepth = 8;

// Opens the last part of `relative` with `flags`. Returns -1 if a part is missing or a link.
int OpenBelow(const std::string& root, const std::string& relative, int flags) {
  int at = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  size_t begin = 0;
  while (at >= 0) {
    const size_t end = relative.find('/', begin);
    const std::string part = relative.substr(begin, end - begin);
    const bool last = end == std::string::npos;
    const int how = O_NOFOLLOW | O_CLOEXEC | (last ? flags : O_PATH | O_DIRECTORY);
    const int next = part.empty() || part == ".." ? -1 : ::openat(at, part.c_str(), how);
    ::close(at);
    at = next;
    if (last) break;
    begin = end + 1;
  }
  return at;
}

// Calls use(name) for each entry until entries_left is 0. Takes ownership of the descriptor.
template <typename F>
void ForEachEntry(int directory, int& entries_left, F&& use) {
  DIR* const listing = ::fdopendir(directory);
  if (!listing) {
    ::close(directory);
    return;
  }
  while (entries_left > 0) {
    const dirent* const entry = ::readdir(listing);
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    --entries_left;
    use(entry->d_name);
  }
  ::closedir(listing);
}

int64_t SizeOf(int directory, const char* name, int depth, int& entries_left) {
  struct stat about;
  if (::fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  if (S_ISREG(about.st_mode)) return about.st_size;
  if (!S_ISDIR(about.st_mode) || depth == 0) return 0;
  const int fd = ::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  int64_t bytes = 0;
  ForEachEntry(fd, entries_left,
               [&](const char* each) { bytes += SizeOf(fd, each, depth - 1, entries_left); });
  return bytes;
}

}  // namespace

int OpenUntrusted(const std::string& root, const std::string& relative, uid_t owner) {
  // O_NONBLOCK: open() would block on a pipe without a writer.
  const int at = OpenBelow(root, relative, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (at < 0) return -1;
  struct stat about;
  if (::fstat(at, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == owner) return at;
  ::close(at);
  return -1;
}

std::optional<std::string> ReadUntrusted(const std::string& root, const std::string& relative,
                                         uid_t owner, size_t max_bytes) {
  const int fd = OpenUntrusted(root, relative, owner);
  if (fd < 0) return std::nullopt;
  // One extra byte reveals that the file is too large.
  std::string content(max_bytes + 1, '\0');
  size_t have = 0;
  ssize_t got = 1;
  while (have < content.size() && got != 0) {
    got = ::read(fd, content.data() + have, content.size() - have);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) have += static_cast<size_t>(got);
  }
  ::close(fd);
  if (got < 0 || have > max_bytes) return std::nullopt;
  content.resize(have);
  return content;
}

int64_t LargestEntryIn(const std::string& root, const std::string& relative) {
  const int fd = OpenBelow(root, relative, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return 0;
  int64_t largest = 0;
  int entries_left = kMaxEntries;
  ForEachEntry(fd, entries_left, [&](const char* name) {
    largest = std::max(largest, SizeOf(fd, name, kMaxDepth, entries_left));
  });
  return largest;
}

}  // namespace renzan::cluster::local
