#pragma once

// Where kernels find the rows that a RowStore has pinned. Kernels address rows by slot; the store
// decides which slot holds which row (row_store.h).

#include <cstddef>
#include <cstdint>

#include "renzan/tensor/float_codec.h"

namespace renzan {

struct RowSlots {
  FloatType type = FloatType::kFloat32;
  int64_t dim = 0;
  std::byte* weights = nullptr;  // [slots, dim] of the type
  float* state = nullptr;        // [slots, StateFloatsPerRow]; null if the optimizer has none
};

}  // namespace renzan
