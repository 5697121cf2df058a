#include "renzan/checkpoint/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kLevels = 255;

float Dequantize(double q, RowScale scale) {
  // The product is exact in float64, so fusing it with the sum does not change the result.
  return static_cast<float>(static_cast<double>(scale.offset) +
                            static_cast<double>(scale.scale) * q);
}

// Quantizes rows as they are read.
class RowQuantizer {
 public:
  RowQuantizer(int64_t dim, std::function<void(std::span<float> out)> read_next_row)
      : read_next_row_(std::move(read_next_row)),
        row_(static_cast<size_t>(dim)),
        codes_(static_cast<size_t>(dim)) {}

  // The codes from `offset`, where the last call ended. It may be inside a row.
  void Read(size_t offset, std::span<std::byte> out) {
    for (size_t done = 0; done < out.size();) {
      const size_t column = (offset + done) % row_.size();
      if (column == 0) NextRow();
      const size_t n = std::min(row_.size() - column, out.size() - done);
      std::memcpy(out.data() + done, codes_.data() + column, n);
      done += n;
    }
  }

  // Of the rows read so far.
  const std::vector<float>& scales() const { return scales_; }
  const std::vector<float>& offsets() const { return offsets_; }

 private:
  void NextRow() {
    read_next_row_(row_);
    const RowScale scale = ScaleOf(row_);
    QuantizeRow(row_, scale, codes_);
    scales_.push_back(scale.scale);
    offsets_.push_back(scale.offset);
  }

  std::function<void(std::span<float> out)> read_next_row_;
  std::vector<float> row_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_, offsets_;
};

}  // namespace

RowScale ScaleOf(std::span<const float> row) {
  if (row.empty()) return {};
  float min = row[0], max = row[0];
  bool finite = true;
  for (const float value : row) {
    min = std::min(min, value);
    max = std::max(max, value);
    finite = finite && std::isfinite(value);
  }
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (!finite) return {kNaN, kNaN};
  if (min == max) return {0, min};
  const double range = static_cast<double>(max) - static_cast<double>(min);
  // A tiny range must not round to scale 0, which stands for a row of equal values.
  float scale =
      std::max(static_cast<float>(range / kLevels), std::numeric_limits<float>::denorm_min());
  // The rounded-up scale of a very wide row could overflow at the highest code.
  if (!std::isfinite(Dequantize(kLevels, {scale, min}))) scale = std::nextafter(scale, 0.f);
  return {scale, min};
}

void QuantizeRow(std::span<const float> row, RowScale scale, std::span<uint8_t> out) {
  if (!(scale.scale > 0)) {
    std::fill(out.begin(), out.end(), uint8_t{0});
    return;
  }
  const double steps = 1 / static_cast<double>(scale.scale);
  for (size_t i = 0; i < row.size(); ++i) {
    const double q = (static_cast<double>(row[i]) - static_cast<double>(scale.offset)) * steps;
    out[i] = static_cast<uint8_t>(std::clamp(q + 0.5, 0.0, kLevels));
  }
}

void DequantizeRow(std::span<const uint8_t> row, RowScale scale, std::span<float> out) {
  for (size_t i = 0; i < row.size(); ++i) out[i] = Dequantize(row[i], scale);
}

QuantizedSources QuantizeRows(const std::string& key, int64_t rows, int64_t dim,
                              std::function<void(std::span<float> out)> read_next_row) {
  CHECK(dim > 0);
  const auto quantizer = std::make_shared<RowQuantizer>(dim, std::move(read_next_row));
  // `values` gives one of the quantizer's two arrays.
  const auto scale_source = [&](const std::string& name, auto values) -> TensorSource {
    return {name, {rows}, DType::kF32, [=](size_t offset, std::span<std::byte> out) {
              const std::span<const std::byte> all = std::as_bytes(std::span(values(*quantizer)));
              CHECK_MSG(offset + out.size() <= all.size(), "{} comes before the codes", name);
              std::memcpy(out.data(), all.data() + offset, out.size());
            }};
  };
  return {{key + ".q8",
           {rows, dim},
           DType::kU8,
           [quantizer](size_t offset, std::span<std::byte> out) { quantizer->Read(offset, out); }},
          {scale_source(
               key + ".scale", [](const RowQuantizer& q) -> auto& { return q.scales(); }),
           scale_source(
               key + ".offset", [](const RowQuantizer& q) -> auto& { return q.offsets(); })}};
}

}  // namespace renzan
