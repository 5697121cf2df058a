#include "renzan/data/dataset/block_checksums.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"

namespace renzan {

FileDigest DigestFile(const std::string& path) {
  FileDigest digest;
  Sha256 sha256;
  // Pieces consist of whole blocks, except for the last block of the file.
  ReadInPieces(path, [&](std::span<const char> piece) {
    sha256.Update({piece.data(), piece.size()});
    for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), kChecksumBlockBytes)))
      digest.blocks.push_back(
          Xxh3OfBlock(piece.data(), std::min(piece.size(), kChecksumBlockBytes)));
  });
  digest.sha256 = sha256.HexDigest();
  return digest;
}

BlockVerifier::BlockVerifier(std::string path, uint64_t file_bytes, std::vector<uint64_t> checksums)
    : path_(std::move(path)),
      file_bytes_(file_bytes),
      checksums_(std::move(checksums)),
      verified_(std::make_unique<std::atomic<bool>[]>(checksums_.size())) {
  CHECK(checksums_.size() == (file_bytes + kChecksumBlockBytes - 1) / kChecksumBlockBytes);
}

void BlockVerifier::Verify(uint64_t block) const {
  const uint64_t begin = block * kChecksumBlockBytes;
  const uint64_t bytes = std::min(kChecksumBlockBytes, file_bytes_ - begin);
  thread_local std::vector<char> buffer(kChecksumBlockBytes);
  // Not through the map: a read failure is an Error here but would be a signal there. Opened each
  // time: a dataset may have more files than a process may keep open.
  const int fd = FileSystem::Get().OpenForReading(path_);
  if (fd < 0) FailToRead(errno, path_);
  const ssize_t got = FileSystem::Get().ReadFully(fd, path_, buffer.data(), bytes, begin);
  const int error = errno;
  ::close(fd);
  if (got < 0) FailToRead(error, path_);
  if (static_cast<uint64_t>(got) < bytes)
    Fail(ErrorCode::kData, "{}: was truncated while it was in use: restore it", path_);
  const uint64_t found = Xxh3OfBlock(buffer.data(), bytes);
  if (found != checksums_[block])
    Fail(ErrorCode::kData,
         "{}: bytes {} to {} are corrupt (XXH3 {:016x}, not {:016x}): restore the file or import "
         "the data again; `renzan data verify` checks all files",
         path_, begin, begin + bytes - 1, found, checksums_[block]);
  verified_[block].store(true, std::memory_order_relaxed);
}

}  // namespace renzan
