#pragma once

// Rows of an incremental checkpoint over those of its base. Plain spans in, no files.

#include <cstdint>
#include <span>
#include <string_view>

namespace renzan {

struct RowOverlay {
  std::span<const int32_t> rows;  // [n], ascending, each once
  int64_t width = 1;              // values per row
  // Either values [n, width], or q8 [n, width] with scale and offset [n] (quantize.h).
  std::span<const float> values;
  std::span<const uint8_t> q8;
  std::span<const float> scale, offset;

  // Replaces in `out`, which holds the base's values from `first_element` on, those of `rows`. Both
  // ends may lie inside a row.
  void Apply(int64_t first_element, std::span<float> out) const;
};

// Throws Error kData, which names the tensor `key`, unless rows ascend, each once, within
// [0, num_rows).
void CheckRows(std::span<const int32_t> rows, int64_t num_rows, std::string_view key);

}  // namespace renzan
