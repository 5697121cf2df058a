#pragma once

// The bytes of a file in a store, front to back, read some pieces ahead. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <string>
#include <vector>

namespace renzan {

class StoreStream {
 public:
  // Throws Error kNoInput if there is no such file.
  explicit StoreStream(const std::string& path);

  // Up to `bytes` bytes, at least one; 0 at the end.
  size_t Read(char* out, size_t bytes);

 private:
  using Piece = std::vector<std::byte>;
  void ReadAhead();

  const std::string path_;
  uint64_t size_ = 0, asked_ = 0;  // bytes of the file, and up to where they are asked for
  std::deque<std::future<Piece>> ahead_;
  Piece piece_;
  size_t taken_ = 0;  // of piece_
};

}  // namespace renzan
