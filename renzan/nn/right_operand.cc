#include "renzan/nn/right_operand.h"

#include <algorithm>
#include <bit>

#include "renzan/nn/isa.h"

namespace renzan {
namespace {

constexpr int64_t kLanes = BlockedMatrix::kLanes;

RightOperand::Layout LayoutOf(Precision precision) {
  using enum RightOperand::Layout;
  if (precision == Precision::kFloat32) return kFloat32;
  switch (BFloat16ProductsOfIsa()) {
    case BFloat16Products::kWidened:
      return kWidened;
    case BFloat16Products::kPairs:
      return kPairs;
    case BFloat16Products::kTiles:
      return kTiles;
  }
  return kWidened;
}

int64_t LaneRows(int64_t rows, RightOperand::Layout layout) {
  switch (layout) {
    case RightOperand::Layout::kFloat32:
      return rows;
    case RightOperand::Layout::kWidened:
      return (rows + 1) / 2 * 2;
    case RightOperand::Layout::kPairs:
      return (rows + 1) / 2;
    case RightOperand::Layout::kTiles:
      return (rows + 2 * kLanes - 1) / (2 * kLanes) * kLanes;
  }
  return 0;
}

}  // namespace

RightOperand::RightOperand(int64_t rows, int64_t columns, Precision precision)
    : rows_(rows), layout_(LayoutOf(precision)), lanes_(LaneRows(rows, layout_), columns) {}

void RightOperand::SetRows(int64_t block, int64_t first_row, const float* values) {
  float* lanes = lanes_.block(block);
  switch (layout_) {
    case Layout::kFloat32:
      std::copy_n(values, std::min(kLanes, rows_ - first_row) * kLanes, lanes + first_row * kLanes);
      return;
    case Layout::kWidened:
      for (int64_t r = 0; r < std::min(kLanes, lanes_.rows() - first_row); ++r) {
        float* to = lanes + ((first_row + r) ^ 1) * kLanes;
        for (int64_t c = 0; c < kLanes; ++c)
          to[c] = FromBFloat16(ToBFloat16(values[r * kLanes + c]));
      }
      return;
    case Layout::kPairs:
    case Layout::kTiles:
      for (int64_t p = 0; p < std::min(kLanes / 2, lanes_.rows() - first_row / 2); ++p) {
        const float* pair = values + 2 * p * kLanes;
        float* to = lanes + (first_row / 2 + p) * kLanes;
        for (int64_t c = 0; c < kLanes; ++c)
          to[c] = std::bit_cast<float>(uint32_t{ToBFloat16(pair[c])} |
                                       uint32_t{ToBFloat16(pair[kLanes + c])} << 16);
      }
      return;
  }
}

void RightOperand::SetBlock(int64_t block, const float* values) {
  const int64_t begin = block * kLanes, count = std::min(kLanes, columns() - begin);
  for (int64_t first = 0; first < rows_; first += kLanes) {
    float tile[kLanes * kLanes] = {};
    for (int64_t r = 0; r < std::min(kLanes, rows_ - first); ++r)
      std::copy_n(values + (first + r) * columns() + begin, count, tile + r * kLanes);
    SetRows(block, first, tile);
  }
}

void RightOperand::SetBlockOfTransposed(int64_t block, const float* values) {
  const int64_t begin = block * kLanes, count = std::min(kLanes, columns() - begin);
  for (int64_t first = 0; first < rows_; first += kLanes) {
    float tile[kLanes * kLanes] = {};
    const int64_t rows = std::min(kLanes, rows_ - first);
    for (int64_t c = 0; c < count; ++c)
      for (int64_t r = 0; r < rows; ++r)
        tile[r * kLanes + c] = values[(begin + c) * rows_ + first + r];
    SetRows(block, first, tile);
  }
}

}  // namespace renzan
