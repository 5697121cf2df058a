#pragma once

#include <cstdint>

#include "renzan/nn/right_operand.h"

namespace renzan {

// How many rows of a weight are packed together.
inline constexpr int64_t kPackedRows = 32;

// Sets what rows [row, row + kPackedRows) of a weight [out, in] determine in both operands, W [out,
// in] and Wᵀ [in, out], in layouts of pairs; `row` is a multiple of kPackedRows. The result equals
// that of SetBlock() and SetBlockOfTransposed() for all blocks, but the weight is read once.
void PackPairs(const float* weight, int64_t row, RightOperand* straight, RightOperand* transposed);

}  // namespace renzan
