#pragma once

// SHA-256 (FIPS 180-4) over OpenSSL.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace renzan {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }

  // 64 lower-case hexadecimal digits. The object cannot be used afterwards.
  std::string HexDigest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Hex(std::string_view text);

// Reads the file once, in pieces. Throws Error kNoInput or kIo.
std::string Sha256OfFile(const std::string& path);

}  // namespace renzan
