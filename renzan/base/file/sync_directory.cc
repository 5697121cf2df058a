#include "renzan/base/file/sync_directory.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "renzan/base/error.h"
#include "renzan/base/file/file_system.h"

namespace renzan {

namespace fs = std::filesystem;

void SyncDirectory(const std::string& path) {
  while (FileSystem::Get().SyncDirectory(path) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EINVAL || error == ENOTSUP || error == EOPNOTSUPP || error == ENOSYS ||
        error == EROFS || error == EBADF)
      return;
    Fail(ErrorCode::kIo, "cannot make the names in directory {} durable: {}", path,
         std::strerror(error));
  }
}

void SyncDirectoriesBelow(const std::string& path) {
  std::error_code error;
  fs::recursive_directory_iterator it(path, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const bool directory = fs::is_directory(it->symlink_status(error));
    if (error) break;
    if (directory) SyncDirectory(it->path().string());
  }
  if (error) Fail(ErrorCode::kIo, "cannot list directory {}: {}", path, error.message());
}

}  // namespace renzan
