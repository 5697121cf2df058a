#include "renzan/model/blocks/first_order.h"

#include <algorithm>

#include "renzan/model/blocks/per_vector.h"

namespace renzan {
namespace {

// The last column of each vector of the input.
std::vector<int64_t> LastColumns(const Shape& vectors) {
  std::vector<int64_t> last;
  int64_t end = 0;
  for (const FeatureVector& vector : vectors) last.push_back((end += vector.dim) - 1);
  return last;
}

Shape WithoutLast(const BlockPlace& place) {
  Shape shape = place.input();
  for (FeatureVector& vector : shape)
    if (--vector.dim < 1) place.Reject("takes vectors of at least two columns");
  return shape;
}

class FirstOrderBlock final : public Block {
 public:
  explicit FirstOrderBlock(const BlockPlace& place)
      : Block({{place.name, 1}}),
        last_(LastColumns(place.input())),
        columns_(ColumnsOf(place.input())),
        bias_(place.parameters.Add(place.name + ".bias", {1, 1}, Initializer::kZero)),
        ones_(place.buffers.Add(1)),
        row_(place.buffers.AddRow(columns_)) {}

  bool GivesLogit() const override { return true; }
  double Flops(bool) const override { return static_cast<double>(last_.size()); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    float* const x = pass.rows[row_].data();
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns_);
      float sum = *pass.parameters.vector(bias_);
      for (const int64_t column : last_) sum += x[column];
      output->Set(i, 0, sum);
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix& output, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    // The bias is the weight of an input that is always 1.
    BlockedMatrix& ones = pass.buffers[ones_];
    for (int64_t i = 0; i < ones.rows(); ++i) ones.Set(i, 0, 1);
    gradients->Add(*d_output, ones, bias_, std::nullopt);
    if (d_inputs.front() == nullptr) return;
    float* const d_x = pass.rows[row_].data();
    std::fill_n(d_x, columns_, 0.0f);
    for (int64_t i = 0; i < output.rows(); ++i) {
      const float d = d_output->at(i, 0);
      for (const int64_t column : last_) d_x[column] = d;
      d_inputs.front()->SetRow(i, 0, d_x, columns_);
    }
  }

 private:
  std::vector<int64_t> last_;
  int64_t columns_, bias_;
  size_t ones_, row_;
};

class FactorsBlock final : public Block {
 public:
  explicit FactorsBlock(const BlockPlace& place)
      : Block(WithoutLast(place)),
        last_(LastColumns(place.input())),
        columns_(ColumnsOf(place.input())),
        row_(place.buffers.AddRow(columns_)),
        factors_row_(place.buffers.AddRow(ColumnsOf(shape()))) {}

  double Flops(bool) const override { return 0; }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    float* const x = pass.rows[row_].data();
    float* const factors = pass.rows[factors_row_].data();
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns_);
      int64_t from = 0;
      float* to = factors;
      for (const int64_t last : last_) {
        while (from < last) *to++ = x[from++];
        ++from;
      }
      output->SetRow(i, 0, factors, to - factors);
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix& output, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    if (d_inputs.front() == nullptr) return;
    float* const d_x = pass.rows[row_].data();
    float* const d_factors = pass.rows[factors_row_].data();
    for (int64_t i = 0; i < output.rows(); ++i) {
      d_output->GetRow(i, 0, d_factors, output.columns());
      int64_t to = 0;
      const float* from = d_factors;
      for (const int64_t last : last_) {
        while (to < last) d_x[to++] = *from++;
        d_x[to++] = 0;
      }
      d_inputs.front()->SetRow(i, 0, d_x, columns_);
    }
  }

 private:
  std::vector<int64_t> last_;
  int64_t columns_;
  size_t row_, factors_row_;  // of a sample: the input, and the output
};

}  // namespace

std::unique_ptr<Block> FirstOrder::Make(const BlockPlace& place) const {
  return std::make_unique<FirstOrderBlock>(place);
}

std::unique_ptr<Block> Factors::Make(const BlockPlace& place) const {
  if (!place.SequenceOf(0)) return std::make_unique<FactorsBlock>(place);
  return MakePerVector(
      place, [](const BlockPlace& of_one) { return std::make_unique<FactorsBlock>(of_one); });
}

}  // namespace renzan
