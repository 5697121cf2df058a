#pragma once

// Rows of embedding tables in 8 bits: value = offset + scale * q, computed in float64 and rounded
// to float32 once, with one scale and one offset per row (offset is the row's minimum, scale its
// range / 255).
//
//   |value - dequantized| <= scale / 2 + 2^-23 * max|row| + 2^-141
//
// A row of equal values has scale 0 and is exact. A row with a NaN or an infinity is read back as
// NaN in every column, so that the corruption stays visible.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "renzan/checkpoint/writer.h"

namespace renzan {

struct RowScale {
  float scale = 0, offset = 0;
};

RowScale ScaleOf(std::span<const float> row);

// `out` has the size of `row`.
void QuantizeRow(std::span<const float> row, RowScale scale, std::span<uint8_t> out);
void DequantizeRow(std::span<const uint8_t> row, RowScale scale, std::span<float> out);

// The three tensors that replace a tensor `key` [rows, dim] in an incremental checkpoint: <key>.q8,
// U8 [rows, dim], and <key>.scale and <key>.offset, F32 [rows]. Rows are read once, while the codes
// are written; the scales are known only after that. So the codes have their own file, written
// before the file with the scales.
struct QuantizedSources {
  TensorSource codes;
  std::vector<TensorSource> scales;
};

// `read_next_row` fetches the rows in order.
QuantizedSources QuantizeRows(const std::string& key, int64_t rows, int64_t dim,
                              std::function<void(std::span<float> out)> read_next_row);

}  // namespace renzan
