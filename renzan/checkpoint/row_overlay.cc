#include "renzan/checkpoint/row_overlay.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/checkpoint/quantize.h"

namespace renzan {

void RowOverlay::Apply(int64_t first_element, std::span<float> out) const {
  const int64_t end = first_element + static_cast<int64_t>(out.size());
  auto row = std::lower_bound(rows.begin(), rows.end(), first_element / width);
  for (; row != rows.end() && *row * width < end; ++row) {
    const int64_t begin = *row * width;
    const int64_t from = std::max(begin, first_element), to = std::min(begin + width, end);
    const size_t size = static_cast<size_t>(to - from);
    const std::span<float> target = out.subspan(static_cast<size_t>(from - first_element), size);
    const size_t index = static_cast<size_t>(row - rows.begin());
    const size_t source = index * static_cast<size_t>(width) + static_cast<size_t>(from - begin);
    if (q8.empty()) {
      Decode(type, values.data() + EncodedBytes(type, source), target);
    } else {
      DequantizeRow(q8.subspan(source, size), {scale[index], offset[index]}, target);
      RoundTrip(type, target);
    }
  }
}

void CheckRows(std::span<const int32_t> rows, int64_t num_rows, std::string_view key) {
  int64_t least = 0;
  for (const int32_t row : rows) {
    if (row < least || row >= num_rows)
      Fail(ErrorCode::kData, "'{}' holds row {} where a row from {} to {} is expected", key, row,
           least, num_rows - 1);
    least = int64_t{row} + 1;
  }
}

}  // namespace renzan
