#pragma once

#include <cstdint>

#include "renzan/nn/right_operand.h"

namespace renzan {

// Rows of a weight that are packed together.
inline constexpr int64_t kPackedRows = 32;

// The part of both operands of a weight [out, in] that its rows [row, row + kPackedRows) determine,
// for a multiple of that: of W [out, in] and Wᵀ [in, out], in layouts of pairs. The same as
// SetBlock() and SetBlockOfTransposed() of all blocks, but reads the weight once.
void PackPairs(const float* weight, int64_t row, RightOperand* straight, RightOperand* transposed);

}  // namespace renzan
