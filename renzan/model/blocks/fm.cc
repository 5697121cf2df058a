#include "renzan/model/blocks/fm.h"

#include "renzan/base/trace.h"

namespace renzan {
namespace {

// Σ_{i<j} <x_i, x_j> = (|Σ x_i|² − Σ |x_i|²) / 2, in time linear in the number of vectors.
class FmBlock final : public Block {
 public:
  explicit FmBlock(const BlockPlace& place)
      : Block({{place.name, 1}}),
        dim_(place.DimOfAll()),
        columns_(ColumnsOf(place.input())),
        row_(place.buffers.AddRow(columns_ + dim_)) {}

  bool GivesLogit() const override { return true; }
  double Flops(bool) const override { return 7 * static_cast<double>(columns_); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("fm");
    float* const x = pass.rows[row_].data();
    float* const sum = x + columns_;
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns_);
      SumVectors(x, sum);
      float squares = 0, square = 0;
      for (int64_t c = 0; c < columns_; ++c) squares += x[c] * x[c];
      for (int64_t c = 0; c < dim_; ++c) square += sum[c] * sum[c];
      output->Set(i, 0, 0.5f * (square - squares));
    }
  }

  // The gradient of x_i is the sum of all other vectors.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients*,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("fm");
    if (d_inputs.front() == nullptr) return;
    float* const x = pass.rows[row_].data();
    float* const sum = x + columns_;
    for (int64_t i = 0; i < output.rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns_);
      SumVectors(x, sum);
      const float d = d_output->at(i, 0);
      for (int64_t c = 0; c < columns_; c += dim_)
        for (int64_t k = 0; k < dim_; ++k) x[c + k] = d * (sum[k] - x[c + k]);
      d_inputs.front()->SetRow(i, 0, x, columns_);
    }
  }

 private:
  void SumVectors(const float* x, float* sum) const {
    std::fill_n(sum, dim_, 0.0f);
    for (int64_t c = 0; c < columns_; c += dim_)
      for (int64_t k = 0; k < dim_; ++k) sum[k] += x[c + k];
  }

  int64_t dim_, columns_;
  size_t row_;  // of a sample, and the sum of its vectors
};

}  // namespace

std::unique_ptr<Block> Fm::Make(const BlockPlace& place) const {
  return std::make_unique<FmBlock>(place);
}

}  // namespace renzan
