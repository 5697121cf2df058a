#include "renzan/model/blocks/bilinear.h"

#include <fmt/format.h>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/trace.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

void CheckStreams(const BlockPlace& place, int64_t heads) {
  if (place.inputs.size() != 2)
    place.Reject(
        fmt::format("takes two inputs, but has {}", Counted(std::ssize(place.inputs), "input")));
  for (const Shape& stream : place.inputs)
    if (const int64_t columns = ColumnsOf(stream); columns == 0 || columns % heads != 0)
      place.Reject(fmt::format("cuts both inputs into {}, but they have {} and {}",
                               Counted(heads, "equal part"), Describe(place.inputs[0]),
                               Describe(place.inputs[1])));
}

class BilinearBlock final : public Block {
 public:
  BilinearBlock(int64_t heads, const BlockPlace& place)
      : Block({{place.name, 1}}),
        x_columns_(ColumnsOf(place.inputs[0])),
        y_columns_(ColumnsOf(place.inputs[1])),
        x_part_(x_columns_ / heads),
        y_part_(y_columns_ / heads) {
    const auto weight = [&](const std::string& name, int64_t out, int64_t in) {
      return place.parameters.Add(place.name + name, {out, in}, Initializer::kXavierNormal);
    };
    x_weight_ = weight(".x.weight", 1, x_columns_);
    y_weight_ = weight(".y.weight", 1, y_columns_);
    bias_ = place.parameters.Add(place.name + ".bias", {1}, Initializer::kZero);
    // The authors draw the weights of all heads as those of one linear layer from all products x_i
    // y_j to the logit.
    const double variance = 2.0 / static_cast<double>(heads * x_part_ * y_part_ + 1);
    for (int64_t h = 0; h < heads; ++h)
      heads_.push_back(
          {.x_column = h * x_part_,
           .y_column = h * y_part_,
           .weight = place.parameters.AddNormal(fmt::format("{}.{}.weight", place.name, h),
                                                {x_part_, y_part_}, variance),
           .y = place.buffers.Add(y_part_),
           .product = place.buffers.Add(x_part_)});
    d_product_ = place.buffers.Add(x_part_);
    d_y_ = place.buffers.Add(y_part_);
    x_row_ = place.buffers.AddRow(x_part_);
    product_row_ = place.buffers.AddRow(x_part_);
    y_row_ = place.buffers.AddRow(y_part_);
  }

  bool GivesLogit() const override { return true; }

  double Flops(bool d_inputs) const override {
    const int64_t linear = x_columns_ + y_columns_;
    return (d_inputs ? 6 : 4) * static_cast<double>(x_columns_ * y_part_ + linear);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("bilinear");
    const BlockedMatrix &x = *inputs[0], &y = *inputs[1];
    Gemm(x, pass.parameters.weight(x_weight_).transposed, {.bias = pass.parameters.vector(bias_)},
         output);
    Gemm(y, pass.parameters.weight(y_weight_).transposed, {.accumulate = true}, output);
    float* const x_row = pass.rows[x_row_].data();
    float* const product_row = pass.rows[product_row_].data();
    for (const Head& head : heads_) {
      BlockedMatrix &part = pass.buffers[head.y], &product = pass.buffers[head.product];
      part.SetColumns(0, y, head.y_column, y_part_);
      Gemm(part, pass.parameters.weight(head.weight).transposed, {}, &product);
      for (int64_t i = 0; i < output->rows(); ++i) {
        x.GetRow(i, head.x_column, x_row, x_part_);
        product.GetRow(i, 0, product_row, x_part_);
        float sum = output->at(i, 0);
        for (int64_t c = 0; c < x_part_; ++c) sum += x_row[c] * product_row[c];
        output->Set(i, 0, sum);
      }
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("bilinear");
    gradients->Add(*d_output, *inputs[0], x_weight_, bias_);
    gradients->Add(*d_output, *inputs[1], y_weight_, std::nullopt);
    BlockedMatrix& d_product = pass.buffers[d_product_];
    for (const Head& head : heads_) {
      DifferentiateProduct(pass, head, *inputs[0], *d_output);
      gradients->Add(d_product, pass.buffers[head.y], head.weight, std::nullopt);
      if (d_inputs[0] != nullptr) SetGradientOfX(pass, head, *d_output, d_inputs[0]);
      if (d_inputs[1] != nullptr) SetGradientOfY(pass, head, *d_output, d_inputs[1]);
    }
  }

 private:
  struct Head {
    int64_t x_column, y_column;  // the first ones of its parts
    int64_t weight;              // offset of the parameter W
    size_t y, product;           // buffers: its part of y, and W y
  };

  // d W y = d · x
  void DifferentiateProduct(const BlockPass& pass, const Head& head, const BlockedMatrix& x,
                            const BlockedMatrix& d_output) const {
    float* const row = pass.rows[x_row_].data();
    for (int64_t i = 0; i < x.rows(); ++i) {
      x.GetRow(i, head.x_column, row, x_part_);
      const float d = d_output.at(i, 0);
      for (int64_t c = 0; c < x_part_; ++c) row[c] *= d;
      pass.buffers[d_product_].SetRow(i, 0, row, x_part_);
    }
  }

  // d x = d · (w_x + W y)
  void SetGradientOfX(const BlockPass& pass, const Head& head, const BlockedMatrix& d_output,
                      BlockedMatrix* d_x) const {
    const float* const weight = pass.parameters.vector(x_weight_) + head.x_column;
    float* const row = pass.rows[product_row_].data();
    for (int64_t i = 0; i < d_x->rows(); ++i) {
      pass.buffers[head.product].GetRow(i, 0, row, x_part_);
      const float d = d_output.at(i, 0);
      for (int64_t c = 0; c < x_part_; ++c) row[c] = d * (weight[c] + row[c]);
      d_x->SetRow(i, head.x_column, row, x_part_);
    }
  }

  // d y = d · w_y + Wᵀ (d · x)
  void SetGradientOfY(const BlockPass& pass, const Head& head, const BlockedMatrix& d_output,
                      BlockedMatrix* d_y) const {
    const float* const weight = pass.parameters.vector(y_weight_) + head.y_column;
    BlockedMatrix& part = pass.buffers[d_y_];
    Gemm(pass.buffers[d_product_], pass.parameters.weight(head.weight).straight, {}, &part);
    float* const row = pass.rows[y_row_].data();
    for (int64_t i = 0; i < d_y->rows(); ++i) {
      part.GetRow(i, 0, row, y_part_);
      const float d = d_output.at(i, 0);
      for (int64_t c = 0; c < y_part_; ++c) row[c] += d * weight[c];
      d_y->SetRow(i, head.y_column, row, y_part_);
    }
  }

  int64_t x_columns_, y_columns_, x_part_, y_part_;  // columns of the inputs, and of a head's parts
  int64_t x_weight_, y_weight_, bias_;               // offsets of the parameters
  std::vector<Head> heads_;
  size_t d_product_, d_y_;  // buffers for one head at a time
  size_t x_row_, product_row_, y_row_;
};

}  // namespace

void Bilinear::Describe(ConfigFields& fields) {
  fields.Range("heads", &heads, 1, kMaxWidth, "both widths are multiples of it");
}

std::unique_ptr<Block> Bilinear::Make(const BlockPlace& place) const {
  CheckStreams(place, heads);
  return std::make_unique<BilinearBlock>(heads, place);
}

}  // namespace renzan
