#pragma once

// Files and directories that appear under their names complete or not at all, written by one
// process at a time: what is not complete yet is `.NAME.partial` beside it, and locked. The lock
// ends with the process, so what an interrupted writer left behind can be told from what another
// one is still writing. Not thread-safe.

#include <string>
#include <string_view>

namespace renzan {

// The exclusive right to write to a name, by an advisory lock on the new file or directory there.
// On file systems without locks the right is not exclusive.
class StagingClaim {
 public:
  enum class Kind { kFile, kDirectory };

  // Makes an empty file or directory. Removes what an interrupted writer left behind. Throws
  // kCantCreate if another process is writing there, or the name cannot be made; it names `output`,
  // which people know.
  StagingClaim(Kind kind, const std::string& path, const std::string& output);
  ~StagingClaim();
  StagingClaim(const StagingClaim&) = delete;
  StagingClaim& operator=(const StagingClaim&) = delete;

  // Removes what is there, unless another process has replaced it.
  void RemoveAll();

 private:
  bool TryToTake();

  Kind kind_;
  std::string path_, output_;
  int fd_ = -1;
};

// A directory: fill `staging()`, then Commit(). Throws kCantCreate if `path` exists, unless it is
// an empty directory, or if another process is writing it. Files in staging() must be closed
// FileWriters (or equally durable); Commit() makes all names in it durable, then its own.
class StagedDirectory {
 public:
  explicit StagedDirectory(const std::string& path);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::string& staging() const { return staging_; }
  void Commit();

  // The staging() of `path`, for other processes that help to fill it.
  static std::string StagingPath(const std::string& path);

 private:
  std::string path_;
  std::string staging_;
  StagingClaim claim_;
  bool committed_ = false;
};

// A file: write `staging()` with a FileWriter and close it, then Commit(). If a symbolic link is at
// `path`, the file is made where it leads. Throws kCantCreate if something is there (results never
// replace what somebody may still need), in a directory that does not exist, or if another process
// is writing it.
class StagedFile {
 public:
  explicit StagedFile(const std::string& path);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  const std::string& staging() const { return staging_; }
  // The name becomes durable, too.
  void Commit();

 private:
  std::string path_;
  std::string staging_;
  StagingClaim claim_;
  bool committed_ = false;
};

// Writes an output that the user named: like StagedFile, but pipes and devices are written to
// directly.
void WriteOutputFile(const std::string& path, std::string_view content);

// Throws what WriteOutputFile would, as far as that can be known before there is a file.
void CheckOutputFile(const std::string& path);

}  // namespace renzan
