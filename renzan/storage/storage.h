#pragma once

// Where data and checkpoints are stored: in directories of this machine, or in an S3-compatible
// object store. The path decides: "s3://bucket/prefix" is a place in a store, every other path a
// directory or file. Once a function has returned without an Error, what it wrote is visible and
// durable; it is there whole or not at all. Thread-safe.
//
// A store has neither directories nor renames. A "directory" there is the set of keys below a
// prefix; it exists as long as there are any.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/file/file.h"

namespace renzan {

// "s3://..."
bool IsInStore(std::string_view path);

// `path`; in a store, without what keys should not contain: "//" and a trailing '/'.
std::string NormalizedPath(const std::string& path);

// Whether a name begins like those of a StagedTree in a store, which nothing else does: 16
// hexadecimal digits and a dot.
bool IsStagedName(std::string_view name);

// A file that appears when Close() returns. The destructor discards it if it was not closed. One in
// a store takes at most this much memory, for the parts in flight.
inline constexpr int64_t kOutputFileBytes = 40 << 20;
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void Write(const void* data, size_t bytes) = 0;
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  virtual void Close() = 0;
  virtual const std::string& path() const = 0;
  virtual uint64_t bytes_written() const = 0;
};

// A file's content as a file of this machine: the file itself, or a copy that nobody else sees and
// that disappears with this object.
class LocalFile {
 public:
  // A file of this machine.
  explicit LocalFile(std::string path) : path_(path), local_path_(std::move(path)) {}
  // A copy of `path`: an open file without a name, which this object closes.
  LocalFile(std::string path, int fd);
  ~LocalFile();
  LocalFile(LocalFile&& other) noexcept;
  LocalFile& operator=(LocalFile&&) = delete;

  const std::string& path() const { return path_; }  // for messages
  // To pass to anything that opens files.
  const std::string& local_path() const { return local_path_; }

 private:
  std::string path_, local_path_;
  int fd_ = -1;
};

// A directory that appears at its path whole or not at all: its files are written first, by any
// number of processes, and its manifest comes last. Without a manifest the destructor removes what
// was written; in a store, where that may take long, the files stay: see Storage::Leftovers().
class StagedTree {
 public:
  virtual ~StagedTree() = default;
  // The tree's file "name" is written to location() + "name".
  virtual const std::string& location() const = 0;
  // Makes the tree visible, with one more file. Throws Error kCantCreate if a tree has appeared at
  // its path.
  virtual void Commit(const std::string& manifest_name, const std::string& manifest) = 0;
};

// Keeps others from writing to a directory while it exists.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
  // Throws Error kCantCreate if another process has taken the lock over, which can happen in a
  // store to a process that did not respond for long.
  virtual void Check() = 0;
};

// How long to wait for a lock whose owner is alive, in addition to the moment it may need to end.
struct Patience {
  double seconds = 0;
  std::function<bool()> ends;  // ends the wait early; empty: nothing does
};

class Storage {
 public:
  virtual ~Storage() = default;

  // The storage that `path` belongs to. Throws Error kConfig for a path in a store if the program
  // does not support stores or its settings are wrong.
  static Storage& Of(std::string_view path);

  // The names in a directory, of files and directories, sorted; none if it does not exist.
  virtual std::vector<std::string> Names(const std::string& dir) = 0;

  static constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

  struct File {
    std::string path;
    uint64_t bytes = 0;
  };
  // All files in a directory and those below it.
  virtual std::vector<File> Files(const std::string& dir) = 0;

  // Whether there is certainly neither file nor directory. Throws Error kNoInput or kIo if that
  // cannot be determined.
  virtual bool IsMissing(const std::string& path) = 0;

  // The sizes of files of one directory. Throws Error kNoInput or kIo.
  virtual std::vector<uint64_t> Sizes(const std::string& dir,
                                      std::span<const std::string> names) = 0;

  // Throws Error kData if the file is larger.
  virtual std::string ReadText(const std::string& path, uint64_t max_bytes = kMaxTextBytes) = 0;
  // Fills `out` with the file's bytes from `offset`. Throws Error kData if the file is too short.
  virtual void ReadRange(const std::string& path, uint64_t offset, std::span<std::byte> out) = 0;
  virtual LocalFile Fetch(const std::string& path) = 0;

  virtual std::unique_ptr<OutputFile> Create(const std::string& path) = 0;
  virtual void WriteText(const std::string& path, std::string_view text) = 0;
  // False if the file exists; then nothing is written.
  virtual bool WriteTextIfAbsent(const std::string& path, std::string_view text) = 0;

  // Removes a file or a directory. Succeeds if it does not exist.
  virtual void Remove(const std::string& path) = 0;

  // Throws Error kCantCreate if there is a non-empty directory at `path`; in a store, where that
  // check would take a request, only Commit() does.
  virtual std::unique_ptr<StagedTree> Stage(const std::string& path,
                                            const std::string& manifest_name) = 0;
  // Whether there is a tree, complete or damaged. Throws Error kNoInput or kIo.
  virtual bool HasTree(const std::string& path, const std::string& manifest_name) = 0;
  // Removes a tree so that it is never seen without some of its files.
  virtual void RemoveTree(const std::string& path, const std::string& manifest_name) = 0;
  // Makes it no longer a tree, but keeps its files. Returns where its manifest is now.
  virtual std::string SetAside(const std::string& path, const std::string& manifest_name) = 0;
  // What killed processes left in `dir` of trees whose names begin with `prefix`: paths to
  // Remove(), which may take a while. `files_of(tree)` gives the names of a tree's files, or
  // nothing if they cannot be known. Only for the process that holds the lock.
  using FilesOf = std::function<std::optional<std::vector<std::string>>(const std::string& tree)>;
  virtual std::vector<std::string> Leftovers(const std::string& dir, const std::string& prefix,
                                             const std::string& manifest_name,
                                             const FilesOf& files_of) = 0;

  // Removes what trees staged at `path` but not committed left there. Also only for the lock's
  // holder.
  virtual void RemoveStaged(const std::string& path) = 0;

  // Waits a while if another process holds the lock, then throws Error kCantCreate, which names its
  // owner. `owner` describes this process in one line. Creates the directory.
  virtual std::unique_ptr<DirectoryLock> Lock(const std::string& dir, const std::string& owner,
                                              const Patience& patience = {}) = 0;
  // Who holds the lock, or held it last; empty if nobody ever did.
  virtual std::string LockOwner(const std::string& dir) = 0;
};

// Called once, before any thread is started: `open` creates the Storage of all "s3://" paths when
// it is first needed. Without this call a program can use only files of its own machine.
void SetObjectStore(std::function<std::unique_ptr<Storage>()> open);

}  // namespace renzan
