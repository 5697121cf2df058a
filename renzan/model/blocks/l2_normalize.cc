#include "renzan/model/blocks/l2_normalize.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/sum_in_lanes.h"

namespace renzan {
namespace {

class L2NormalizeBlock final : public Block {
 public:
  L2NormalizeBlock(const L2Normalize& options, const BlockPlace& place)
      : Block(place.input(), options.per_vector ? place.SequenceOf(0) : std::nullopt),
        epsilon_(static_cast<float>(options.epsilon)),
        columns_(ColumnsOf(shape())),
        width_(options.per_vector ? place.DimOfAll() : columns_),
        row_(place.buffers.AddRow(2 * columns_)) {}

  Needs NewestNeeds() const override { return Needs::kNewest; }
  double Flops(bool) const override { return 8 * static_cast<double>(ComputedColumns()); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("l2 normalize");
    float* const x = pass.rows[row_].data();
    const int64_t columns = output->columns();  // of a row, which may be a sample or a position
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns);
      for (float* part = x; part != x + columns; part += width_) {
        const float length = std::max(Length(part), epsilon_);
        for (int64_t c = 0; c < width_; ++c) part[c] /= length;
      }
      output->SetRow(i, 0, x, columns);
    }
  }

  // With the output y: dx = (dy − y <y, dy>) / ‖x‖, and dy / epsilon where ‖x‖ is smaller.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("l2 normalize");
    if (d_inputs.front() == nullptr) return;
    float *const x = pass.rows[row_].data(), *const d = x + columns_;
    const int64_t columns = d_output->columns();
    for (int64_t i = 0; i < d_output->rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns);
      d_output->GetRow(i, 0, d, columns);
      for (int64_t first = 0; first < columns; first += width_) ThroughPart(x + first, d + first);
      d_inputs.front()->SetRow(i, 0, d, columns);
    }
  }

 private:
  float Length(const float* x) const { return std::sqrt(ProductOf(x, x, width_)); }

  void ThroughPart(float* x, float* d) const {
    const float length = Length(x);
    if (length > epsilon_) {
      for (int64_t c = 0; c < width_; ++c) x[c] /= length;
      const float product = ProductOf(x, d, width_);
      for (int64_t c = 0; c < width_; ++c) d[c] -= x[c] * product;
    }
    for (int64_t c = 0; c < width_; ++c) d[c] /= std::max(length, epsilon_);
  }

  float epsilon_;
  int64_t columns_, width_;  // width_: of what is divided by one length
  size_t row_;               // of a sample: its values and their gradient
};

}  // namespace

void L2Normalize::Describe(ConfigFields& fields) {
  fields.Field("per_vector", &per_vector, "each vector by itself, instead of all columns at once");
  fields.Range("epsilon", &epsilon, 1e-12, 1, "the smallest length to divide by");
}

std::unique_ptr<Block> L2Normalize::Make(const BlockPlace& place) const {
  return std::make_unique<L2NormalizeBlock>(*this, place);
}

}  // namespace renzan
