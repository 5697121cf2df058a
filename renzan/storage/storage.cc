#include "renzan/storage/storage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/storage/posix_storage.h"

namespace renzan {
namespace {

constexpr std::string_view kScheme = "s3://";

struct ObjectStore {
  std::mutex mutex;
  std::function<std::unique_ptr<Storage>()> open;
  std::unique_ptr<Storage> storage;
};
ObjectStore& TheObjectStore() {
  static ObjectStore store;
  return store;
}

}  // namespace

bool IsInStore(std::string_view path) { return path.starts_with(kScheme); }

std::string NormalizedPath(const std::string& path) {
  if (!IsInStore(path)) return path;
  std::string normalized(kScheme);
  for (const char c : path.substr(kScheme.size()))
    if (c != '/' || normalized.back() != '/' || normalized.size() == kScheme.size())
      normalized += c;
  while (normalized.size() > kScheme.size() && normalized.back() == '/') normalized.pop_back();
  return normalized;
}

bool IsStagedName(std::string_view name) {
  constexpr size_t kDigits = 16;
  return name.size() > kDigits && name[kDigits] == '.' &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

LocalFile::LocalFile(std::string path, int fd)
    : path_(std::move(path)), local_path_(fmt::format("/proc/self/fd/{}", fd)), fd_(fd) {}

LocalFile::LocalFile(LocalFile&& other) noexcept
    : path_(std::move(other.path_)),
      local_path_(std::move(other.local_path_)),
      fd_(std::exchange(other.fd_, -1)) {}

LocalFile::~LocalFile() {
  if (fd_ >= 0) ::close(fd_);
}

Storage& Storage::Of(std::string_view path) {
  if (!IsInStore(path)) {
    static PosixStorage files;
    return files;
  }
  ObjectStore& store = TheObjectStore();
  const std::lock_guard lock(store.mutex);
  if (!store.open)
    Fail(ErrorCode::kConfig, "{} is in an object store, which this program cannot use", path);
  if (store.storage == nullptr) store.storage = store.open();
  return *store.storage;
}

void SetObjectStore(std::function<std::unique_ptr<Storage>()> open) {
  ObjectStore& store = TheObjectStore();
  const std::lock_guard lock(store.mutex);
  store.open = std::move(open);
  store.storage.reset();
}

}  // namespace renzan
