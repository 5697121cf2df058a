#include "renzan/base/file/free_space.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

std::string ExistingPath(std::string path) {
  while (!FileExists(path)) {
    std::string parent = ParentDirectory(path);
    if (parent == path) break;
    path = std::move(parent);
  }
  return path;
}

}  // namespace

std::optional<int64_t> FreeBytes(const std::string& path) {
  struct statvfs room {};
  if (::statvfs(ExistingPath(path).c_str(), &room) != 0) return std::nullopt;
  return static_cast<int64_t>(room.f_bavail * room.f_frsize);
}

bool AreOnOneFileSystem(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  return ::stat(ExistingPath(a).c_str(), &of_a) == 0 &&
         ::stat(ExistingPath(b).c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

}  // namespace renzan
