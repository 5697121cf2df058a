#include "renzan/base/sha256.h"

#include <openssl/evp.h>

#include <span>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(const void* data, size_t bytes) {
  CHECK(EVP_DigestUpdate(state_->context, data, bytes) == 1);
}

std::string Sha256::HexDigest() {
  unsigned char digest[32];
  CHECK(EVP_DigestFinal_ex(state_->context, digest, nullptr) == 1);
  std::string hex;
  for (unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string Sha256Hex(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.HexDigest();
}

std::string Sha256OfFile(const std::string& path) {
  Sha256 hash;
  ReadInPieces(path, [&](std::span<const char> piece) { hash.Update(piece.data(), piece.size()); });
  return hash.HexDigest();
}

}  // namespace renzan
