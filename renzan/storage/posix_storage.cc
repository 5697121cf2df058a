#include "renzan/storage/posix_storage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDeleting = ".deleting";
constexpr std::string_view kPartial = ".partial";  // the suffix that StagedDirectory uses
constexpr double kLockSeconds = 5;
constexpr char kLockName[] = "/.lock";

class OutputFileOnDisk : public OutputFile {
 public:
  explicit OutputFileOnDisk(const std::string& path) : file_(path) {}
  void Write(const void* data, size_t bytes) override { file_.Write(data, bytes); }
  void Close() override { file_.Close(); }
  const std::string& path() const override { return file_.path(); }
  uint64_t bytes_written() const override { return file_.bytes_written(); }

 private:
  FileWriter file_;
};

class TreeOnDisk : public StagedTree {
 public:
  explicit TreeOnDisk(const std::string& path)
      : path_(path), staged_(path), location_(staged_.staging() + "/") {}
  const std::string& location() const override { return location_; }
  void Commit(const std::string& manifest_name, const std::string& manifest) override {
    FileWriter file(location_ + manifest_name);
    file.Write(manifest);
    file.Close();
    std::error_code ignored;
    if (fs::exists(path_, ignored) && !fs::is_empty(path_, ignored))
      Fail(ErrorCode::kCantCreate,
           "{} exists: another run has written it meanwhile; only one at a time may", path_);
    staged_.Commit();
  }

 private:
  std::string path_;
  StagedDirectory staged_;
  std::string location_;
};

class LockOnDisk : public DirectoryLock {
 public:
  explicit LockOnDisk(std::unique_ptr<FileLock> lock) : lock_(std::move(lock)) {}
  void Check() override {}  // the kernel keeps it

 private:
  std::unique_ptr<FileLock> lock_;
};

void Rename(const std::string& from, const std::string& to) {
  if (FileSystem::Get().Rename(from, to) != 0)
    Fail(ErrorCode::kIo, "cannot rename {} to {}: {}", from, to, std::strerror(errno));
}

// `path` without a '/' at its end.
std::string Trimmed(const std::string& path) {
  const fs::path trimmed(path);
  return (trimmed.has_filename() ? trimmed : trimmed.parent_path()).string();
}

}  // namespace

std::vector<std::string> PosixStorage::Names(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  if (IsMissing(dir)) return names;
  // increment() fails too if the directory is removed meanwhile.
  for (fs::directory_iterator i(dir, error), end; !error && i != end; i.increment(error))
    names.push_back(i->path().filename().string());
  if (error) FailToRead(error.value(), dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Storage::File> PosixStorage::Files(const std::string& dir) {
  std::vector<File> files;
  for (const std::string& name : Names(dir)) {
    const std::string path = dir + "/" + name;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back({path, FileSize(path)});
      continue;
    }
    for (File& file : Files(path)) files.push_back(std::move(file));
  }
  return files;
}

bool PosixStorage::IsMissing(const std::string& path) { return renzan::IsMissing(path); }

std::vector<uint64_t> PosixStorage::Sizes(const std::string& dir,
                                          std::span<const std::string> names) {
  std::vector<uint64_t> sizes;
  for (const std::string& name : names) sizes.push_back(FileSize(dir + "/" + name));
  return sizes;
}

std::string PosixStorage::ReadText(const std::string& path, uint64_t max_bytes) {
  const uint64_t bytes = FileSize(path);
  if (bytes > max_bytes) Fail(ErrorCode::kData, "it has {} bytes", bytes);
  return ReadFile(path);
}

void PosixStorage::ReadRange(const std::string& path, uint64_t offset, std::span<std::byte> out) {
  FileSystem& files = FileSystem::Get();
  const int fd = files.OpenForReading(path);
  if (fd < 0) FailToRead(errno, path);
  const ssize_t count = files.ReadFully(fd, path, out.data(), out.size(), offset);
  const int error = errno;
  files.Close(fd);
  if (count < 0) FailToRead(error, path);
  if (static_cast<size_t>(count) < out.size())
    Fail(ErrorCode::kData, "{} ends before byte {}: was it cut short?", path, offset + out.size());
}

LocalFile PosixStorage::Fetch(const std::string& path) { return LocalFile(path); }

std::unique_ptr<OutputFile> PosixStorage::Create(const std::string& path) {
  return std::make_unique<OutputFileOnDisk>(path);
}

void PosixStorage::WriteText(const std::string& path, std::string_view text) {
  WriteFileAtomically(path, text);
}

bool PosixStorage::WriteTextIfAbsent(const std::string& path, std::string_view text) {
  static std::atomic<int> last{0};
  const std::string temporary = fmt::format("{}.new-{}-{}", path, ::getpid(), ++last);
  FileWriter file(temporary);
  file.Write(text);
  file.Close();
  const bool absent = ::link(temporary.c_str(), path.c_str()) == 0;
  const int error = errno;
  FileSystem::Get().Unlink(temporary);
  if (!absent && error != EEXIST) FailErrno(error, "cannot create " + path);
  if (absent && FileSystem::Get().SyncDirectory(ParentDirectory(path)) != 0)
    FailErrno(errno, "cannot make durable " + path);
  return absent;
}

void PosixStorage::Remove(const std::string& path) {
  if (FileSystem::Get().RemoveTree(path) != 0) FailErrno(errno, "cannot remove " + path);
}

std::unique_ptr<StagedTree> PosixStorage::Stage(const std::string& path, const std::string&) {
  return std::make_unique<TreeOnDisk>(path);
}

bool PosixStorage::HasTree(const std::string& path, const std::string&) { return !IsMissing(path); }

// Renames first, so that a partly removed directory is never taken for a corrupt tree.
void PosixStorage::RemoveTree(const std::string& path, const std::string&) {
  const fs::path tree(Trimmed(path));
  const std::string parent = ParentDirectory(tree.string());
  const std::string doomed = fmt::format("{}/.{}{}", parent, tree.filename().string(), kDeleting);
  Rename(tree.string(), doomed);
  // Make the rename durable before removing files, or a power loss could leave a corrupt tree under
  // the original name.
  FileSystem::Get().SyncDirectory(parent);
  Remove(doomed);
}

std::string PosixStorage::SetAside(const std::string& path, const std::string&) {
  const std::string from = Trimmed(path);
  const std::string stem = from + ".corrupt";
  std::string to = stem;
  for (int i = 2; !IsMissing(to); ++i) to = fmt::format("{}-{}", stem, i);
  Rename(from, to);
  return to;
}

std::vector<std::string> PosixStorage::Leftovers(const std::string& dir, const std::string& prefix,
                                                 const std::string&, const FilesOf&) {
  std::vector<std::string> paths;
  for (const std::string& name : Names(dir)) {
    if (!name.starts_with("." + prefix)) continue;
    std::string path = dir + "/" + name;
    // Renamed first, so that a later attempt to write this tree does not find a partly removed
    // directory.
    if (name.ends_with(kPartial) &&
        FileSystem::Get().Rename(path, path + std::string(kDeleting)) == 0)
      path += kDeleting;
    if (path.ends_with(kDeleting)) paths.push_back(path);
  }
  return paths;
}

std::unique_ptr<DirectoryLock> PosixStorage::Lock(const std::string& dir, const std::string& owner,
                                                  const Patience& patience) {
  CreateDirectories(dir);
  const std::string path = dir + kLockName;
  std::unique_ptr<FileLock> lock = FileLock::TryLock(path, owner);
  if (lock == nullptr) {
    LogInfo("waiting for another run that is writing to {}: {}", dir, FileLock::OwnerOf(path));
    lock =
        FileLock::WaitForLock(path, owner, std::max(kLockSeconds, patience.seconds), patience.ends);
  }
  if (lock == nullptr)
    Fail(ErrorCode::kCantCreate,
         "another run is writing to {}: {}; wait for it, or choose another --run-dir (or "
         "checkpoint.dir)",
         dir, FileLock::OwnerOf(path));
  return std::make_unique<LockOnDisk>(std::move(lock));
}

std::string PosixStorage::LockOwner(const std::string& dir) {
  return FileLock::OwnerOf(dir + kLockName);
}

}  // namespace renzan
