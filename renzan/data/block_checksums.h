#pragma once

// Checksums of a file's blocks: damage is noticed when a block is first read, at little more cost
// than reading it, and not only by who reads all of the file.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace renzan {

// Small, so that a batch of shuffled rows does not have to read much more than itself.
inline constexpr uint64_t kChecksumBlockBytes = 64 << 10;

struct FileDigest {
  std::string sha256;
  std::vector<uint64_t> blocks;  // XXH3 of each block of the file
};

// Reads the file once. Throws Error kNoInput or kIo.
FileDigest DigestFile(const std::string& path);

// Verifies the blocks of a file when they are first needed. Thread-safe; two threads that need the
// same block at once may both verify it. What it reads is then in the page cache, where a map of
// the file finds it.
class BlockVerifier {
 public:
  // Verifies nothing.
  BlockVerifier() = default;
  // `checksums`: one for each block of a file of `file_bytes` bytes.
  BlockVerifier(std::string path, uint64_t file_bytes, std::vector<uint64_t> checksums);

  // Throws kData if a block that holds some of the bytes [begin, end) is not what was written, or
  // the file has become shorter; kIo if the disk cannot read it.
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
