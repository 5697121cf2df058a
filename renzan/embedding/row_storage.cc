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

bool RowStorage::AllFinite(size_t first, size_t size) const {
  if (type_ == FloatType::kFloat32) return renzan::AllFinite(buffer_.span().subspan(first, size));
  std::vector<float> piece(1 << 14);
  for (const size_t end = first + size; first < end; first += piece.size()) {
    const auto values = std::span(piece).first(std::min(piece.size(), end - first));
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
