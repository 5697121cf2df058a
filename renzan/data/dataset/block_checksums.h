#pragma once

// Checksums of a file's blocks: corruption is detected when a block is first read, at little more
// than the cost of reading it, without reading the whole file.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace renzan {

// Small, so that a batch of shuffled rows reads little more than its own data.
inline constexpr uint64_t kChecksumBlockBytes = 64 << 10;

struct FileDigest {
  std::string sha256;
  std::vector<uint64_t> blocks;  // XXH3 of each block of the file
};

// Reads the file once. Throws Error kNoInput or kIo.
FileDigest DigestFile(const std::string& path);

// Verifies the blocks of a file when they are first needed. Thread-safe; two threads that need the
// same block may both verify it. The block is then in the page cache for a memory map of the file.
class BlockVerifier {
 public:
  // Verifies nothing.
  BlockVerifier() = default;
  // `checksums`: one for each block of a file of `file_bytes` bytes.
  BlockVerifier(std::string path, uint64_t file_bytes, std::vector<uint64_t> checksums);

  // Throws kData if a block that overlaps bytes [begin, end) is corrupt or the file was truncated;
  // kIo if reading fails.
  void Need(uint64_t begin, uint64_t end) const {
    if (verified_ == nullptr || begin == end) return;
    const uint64_t last = (end - 1) / kChecksumBlockBytes;
    for (uint64_t block = begin / kChecksumBlockBytes; block <= last; ++block)
      if (!verified_[block].load(std::memory_order_relaxed)) [[unlikely]]
        Verify(block);
  }

 private:
  void Verify(uint64_t block) const;

  std::string path_;
  uint64_t file_bytes_ = 0;
  std::vector<uint64_t> checksums_;
  std::unique_ptr<std::atomic<bool>[]> verified_;  // by block; null: nothing is verified
};

}  // namespace renzan
