#pragma once

// Which chunks of one cache folder's files are present: a table in a file that processes map, with
// an entry for each chunk. See block_cache.h for the protocol. Thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace renzan {

class ChunkTable {
 public:
  struct Chunk {
    std::atomic<uint32_t> version;   // odd: the chunk is present
    std::atomic<uint32_t> next_use;  // seconds since 1970
    // Identifies the machine's boot during which the chunk was verified: bytes that had not reached
    // the disk are lost in a reboot.
    std::atomic<uint32_t> verified_in;

    bool is_there() const { return version.load(std::memory_order_acquire) % 2 == 1; }
  };
  struct File {
    std::string name;
    uint64_t bytes = 0;
  };

  // Opens or creates the table of `folder` for these files. An existing table for other files, or
  // with larger chunks, is replaced if nobody uses it. While this one is open, no other process
  // removes the folder.
  ChunkTable(const std::string& folder, const std::vector<File>& files, uint64_t chunk_bytes);
  ~ChunkTable();
  ChunkTable(const ChunkTable&) = delete;
  ChunkTable& operator=(const ChunkTable&) = delete;

  // For eviction: the table of another folder; null if there is none (any more). `is_used`: whether
  // a process has it open through the constructor above.
  static std::unique_ptr<ChunkTable> OpenOther(const std::string& folder, bool* is_used);

  // The bytes that were present in the table that this one replaced.
  uint64_t dropped_bytes() const { return dropped_bytes_; }
  const std::string& folder() const { return folder_; }
  uint64_t chunk_bytes() const { return chunk_bytes_; }
  uint64_t num_chunks() const { return num_chunks_; }
  Chunk& operator[](uint64_t chunk) const { return chunks_[chunk]; }
  uint32_t machine_start() const { return machine_start_; }

  // Bytes [begin, end) of a file of this folder.
  struct Place {
    size_t file = 0;
    uint64_t begin = 0, end = 0;
  };
  Place PlaceOf(uint64_t chunk) const;
  // A file, open while this object lives: a dataset may have more files than a process may open.
  class OpenFile {
   public:
    explicit OpenFile(const std::string& path);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    int fd() const { return fd_; }  // negative if it cannot be opened; errno says why

   private:
    int fd_;
  };
  std::string PathOf(size_t file) const { return folder_ + "/" + files_[file].name; }
  const std::vector<File>& files() const { return files_; }

  // Excludes all other threads and processes from a chunk.
  class Lock {
   public:
    // Null if it is held and `wait` is false. Throws Error kIo.
    static std::unique_ptr<Lock> Take(const ChunkTable& table, uint64_t chunk, bool wait);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    explicit Lock(int fd) : fd_(fd) {}
    int fd_;
  };

  // Frees a chunk's bytes on the disk. It must be present, and the caller must hold its lock.
  void Evict(uint64_t chunk) const;

 private:
  ChunkTable() = default;
  void Create(const std::vector<File>& files, uint64_t chunk_bytes);
  bool Read();
  void Map();
  void CreateFiles() const;
  bool TryToOpen(const std::vector<File>& files, uint64_t chunk_bytes);
  void Close();
  void FreeWhatIsNotThere() const;
  void FreeBytes(const Place& place) const;

  std::string folder_;
  std::vector<File> files_;
  std::vector<uint64_t> first_chunks_;  // of files
  uint64_t chunk_bytes_ = 0, num_chunks_ = 0, dropped_bytes_ = 0;
  uint32_t machine_start_ = 0;
  int fd_ = -1;  // of the table; holds a shared lock while it is open
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  Chunk* chunks_ = nullptr;
};

}  // namespace renzan
