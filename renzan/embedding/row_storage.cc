#include "renzan/embedding/row_storage.h"

#include <algorithm>
#include <vector>

#include "renzan/optim/finite.h"

namespace renzan {

RowStorage::RowStorage(FloatType type, int64_t rows, int64_t dim)
    : type_(type),
      dim_(dim),
      size_(static_cast<size_t>(rows * dim)),
      buffer_((EncodedBytes(type, size_) + sizeof(float) - 1) / sizeof(float)) {}

bool RowStorage::AllFinite() const {
  if (type_ == FloatType::kFloat32) return renzan::AllFinite(buffer_.span());
  std::vector<float> piece(1 << 14);
  for (size_t first = 0; first < size_; first += piece.size()) {
    const auto values = std::span(piece).first(std::min(piece.size(), size_ - first));
    Get(first, values);
    if (!renzan::AllFinite(values)) return false;
  }
  return true;
}

void RowStorage::Get(size_t first, std::span<float> values) const {
  Decode(type_, bytes().data() + EncodedBytes(type_, first), values);
}

void RowStorage::Set(size_t first, std::span<const float> values) {
  Encode(type_, values, bytes().data() + EncodedBytes(type_, first));
}

}  // namespace renzan
