#include "renzan/cluster/local/supervisor/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace renzan::cluster::local {
namespace {

// Bounds the memory. What is beyond is not counted.
constexpr size_t kMostRemembered = 200'000, kMostPathBytes = 32 << 20;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

struct DiskUse::Open {
  std::string path;
  std::unique_ptr<DIR, CloseDirectory> entries;
};

DiskUse::DiskUse(const std::string& directory) : root_(::open(directory.c_str(), kDirectory)) {
  if (!root_) return;
  pending_.emplace_back(".");
  pending_bytes_ = 1;
}
DiskUse::~DiskUse() = default;
DiskUse::DiskUse(DiskUse&&) noexcept = default;
DiskUse& DiskUse::operator=(DiskUse&&) noexcept = default;

// Negative: it is gone, or not a directory any more, or behind a link.
int DiskUse::OpenDirectory(const std::string& path) const {
  open_how how{};
  how.flags = kDirectory;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  const auto fd =
      static_cast<int>(::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof(how)));
  // Before Linux 5.6, and where a container does not allow it: only its last part is no link.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return ::openat(root_.get(), path.c_str(), kDirectory);
  return fd;
}

// Opens the next directory; false: there is none.
bool DiskUse::Next() {
  while (!pending_.empty()) {
    const std::string path = std::move(pending_.back());
    pending_.pop_back();
    pending_bytes_ -= path.size();
    const int fd = OpenDirectory(path);
    DIR* const entries = fd < 0 ? nullptr : ::fdopendir(fd);
    if (entries == nullptr) {
      if (fd >= 0) ::close(fd);
      continue;
    }
    auto opened = std::make_unique<Open>();
    opened->path = path;
    opened->entries.reset(entries);
    struct stat about {};
    if (::fstat(fd, &about) != 0 || (device_ != 0 && about.st_dev != device_)) continue;
    device_ = about.st_dev;
    Count(about.st_blocks);
    open_ = std::move(opened);
    return true;
  }
  return false;
}

void DiskUse::LookAt(const char* name) {
  struct stat about {};
  if (::fstatat(::dirfd(open_->entries.get()), name, &about, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (about.st_dev != device_) return;
  if (S_ISDIR(about.st_mode)) {
    std::string path = open_->path + "/" + name;
    if (pending_.size() >= kMostRemembered || pending_bytes_ + path.size() > kMostPathBytes) return;
    pending_bytes_ += path.size();
    pending_.push_back(std::move(path));
    return;
  }
  if (about.st_nlink > 1 &&
      (linked_.size() >= kMostRemembered || !linked_.insert(about.st_ino).second))
    return;
  Count(about.st_blocks);
}

bool DiskUse::Advance(int files) {
  for (; files > 0; --files) {
    if (!open_ && !Next()) return true;
    const dirent* const entry = ::readdir(open_->entries.get());
    if (entry == nullptr) {
      open_.reset();
      continue;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") LookAt(entry->d_name);
  }
  return false;
}

}  // namespace renzan::cluster::local
