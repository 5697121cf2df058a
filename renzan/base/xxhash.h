#pragma once

// XXH3, 128 or 64 bits wide: a checksum that detects corruption at memory bandwidth. It does not
// protect against deliberate collisions; SHA-256 (sha256.h) does.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace renzan {

// Not thread-safe. The result does not depend on how the bytes were split over Update() calls.
class Xxh128 {
 public:
  Xxh128();
  ~Xxh128();
  Xxh128(Xxh128&&) noexcept;
  Xxh128& operator=(Xxh128&&) noexcept;

  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }

  // Of all bytes so far: 32 lower-case hexadecimal digits, as xxh128sum prints them.
  std::string HexDigest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Reads the file once, in pieces. Throws Error kNoInput or kIo.
std::string Xxh128OfFile(const std::string& path);

// 64 bits wide, seed 0: for the many short blocks of a file.
uint64_t Xxh3OfBlock(const void* data, size_t bytes);

}  // namespace renzan
