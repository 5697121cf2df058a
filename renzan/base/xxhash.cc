#include "renzan/base/xxhash.h"

#include <xxhash.h>

#include <span>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {

struct Xxh128::State {
  // The type needs 64-byte alignment, which only the library's own allocator guarantees.
  XXH3_state_t* xxh3 = XXH3_createState();
  ~State() { XXH3_freeState(xxh3); }
};

Xxh128::Xxh128() : state_(std::make_unique<State>()) {
  CHECK(state_->xxh3 != nullptr && XXH3_128bits_reset(state_->xxh3) == XXH_OK);
}
Xxh128::~Xxh128() = default;
Xxh128::Xxh128(Xxh128&&) noexcept = default;
Xxh128& Xxh128::operator=(Xxh128&&) noexcept = default;

void Xxh128::Update(const void* data, size_t bytes) {
  if (bytes == 0) return;  // the library treats a null pointer as an error
  CHECK(XXH3_128bits_update(state_->xxh3, data, bytes) == XXH_OK);
}

std::string Xxh128::HexDigest() const {
  XXH128_canonical_t canonical;  // big-endian
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh3));
  std::string hex;
  for (const unsigned char byte : canonical.digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string Xxh128OfFile(const std::string& path) {
  Xxh128 hash;
  ReadInPieces(path, [&](std::span<const char> piece) { hash.Update(piece.data(), piece.size()); });
  return hash.HexDigest();
}

uint64_t Xxh3OfBlock(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

}  // namespace renzan
