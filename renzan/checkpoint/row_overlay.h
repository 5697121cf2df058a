#pragma once

// Replaces rows of a base with those of an incremental checkpoint. Works on plain spans, not files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "renzan/tensor/float_codec.h"

namespace renzan {

struct RowOverlay {
  std::span<const int32_t> rows;  // [n], strictly ascending
  int64_t width = 1;              // values per row
  // Either values [n, width] of `type`, or q8 [n, width] with scale and offset [n] (quantize.h),
  // whose values are rounded to `type`.
  FloatType type = FloatType::kFloat32;
  std::span<const std::byte> values;
  std::span<const uint8_t> q8;
  std::span<const float> scale, offset;

  // `out` holds the base's values from `first_element`; replaces those in `rows`. Both ends may be
  // inside a row.
  void Apply(int64_t first_element, std::span<float> out) const;
};

// Throws Error kData, which names the tensor `key`, unless rows are strictly ascending and within
// [0, num_rows).
void CheckRows(std::span<const int32_t> rows, int64_t num_rows, std::string_view key);

}  // namespace renzan
