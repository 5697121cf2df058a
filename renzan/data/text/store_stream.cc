#include "renzan/data/text/store_stream.h"

#include <algorithm>
#include <cstring>

#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr uint64_t kPieceBytes = 8 << 20;
constexpr size_t kPiecesAhead = 4;

}  // namespace

StoreStream::StoreStream(const std::string& path) : path_(NormalizedPath(path)) {
  const size_t slash = path_.rfind('/');
  const std::string name = path_.substr(slash + 1);
  size_ = Storage::Of(path_).Sizes(path_.substr(0, slash), std::span(&name, 1))[0];
}

void StoreStream::ReadAhead() {
  while (ahead_.size() < kPiecesAhead && asked_ < size_) {
    const uint64_t offset = asked_, bytes = std::min(kPieceBytes, size_ - offset);
    asked_ += bytes;
    ahead_.push_back(std::async(std::launch::async, [path = path_, offset, bytes] {
      Piece piece(bytes);
      Storage::Of(path).ReadRange(path, offset, piece);
      return piece;
    }));
  }
}

size_t StoreStream::Read(char* out, size_t bytes) {
  ReadAhead();
  if (taken_ == piece_.size()) {
    if (ahead_.empty()) return 0;
    piece_ = ahead_.front().get();
    ahead_.pop_front();
    taken_ = 0;
    ReadAhead();
  }
  const size_t count = std::min(bytes, piece_.size() - taken_);
  std::memcpy(out, piece_.data() + taken_, count);
  taken_ += count;
  return count;
}

}  // namespace renzan
