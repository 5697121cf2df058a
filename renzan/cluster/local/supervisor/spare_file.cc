#include "renzan/cluster/local/supervisor/spare_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/process/descriptor.h"

namespace renzan::cluster::local {
namespace {

// False, with the spare as it was or with another content, if it does not exist or is too small.
bool UseSpare(const std::string& spare, const std::string& path, std::string_view content) {
  {
    const Descriptor file(::open(spare.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return false;
    const auto bytes = static_cast<ssize_t>(content.size());
    if (::pwrite(file.get(), content.data(), content.size(), 0) != bytes ||
        ::ftruncate(file.get(), bytes) != 0 || ::fsync(file.get()) != 0)
      return false;
  }
  FileSystem& files = FileSystem::Get();
  return files.Rename(spare, path) == 0 && files.SyncDirectory(ParentDirectory(path)) == 0;
}

}  // namespace

void MakeSpare(const std::string& path, size_t bytes) {
  if (FileExists(path)) return;
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Written rather than allocated, so that file systems without fallocate have the blocks, too.
  const std::string blanks(bytes, ' ');
  errno = file ? 0 : errno;
  if (file && ::write(file.get(), blanks.data(), bytes) == static_cast<ssize_t>(bytes)) return;
  const int error = file && errno == 0 ? ENOSPC : errno;
  if (file) ::unlink(path.c_str());
  FailErrno(error, "cannot write " + path);
}

void WriteEvenIfFull(const std::string& path, std::string_view content,
                     const std::vector<std::string>& spares) {
  try {
    WriteFileAtomically(path, content);
  } catch (const Error&) {
    for (const std::string& spare : spares)
      if (UseSpare(spare, path, content)) return;
    throw;
  }
}

}  // namespace renzan::cluster::local
