#include "renzan/model/blocks/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/sum_in_lanes.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

int64_t WidthOfExperts(const BlockPlace& place) {
  if (place.inputs.size() < 3)
    place.Reject(fmt::format("takes the input of its gate and two experts or more, but has {}",
                             Counted(place.inputs.size(), "input")));
  for (const Shape& input : place.inputs)
    if (ColumnsOf(input) == 0) place.Reject("has an input without columns");
  const Shape& first = place.inputs[1];
  for (const Shape& expert : place.inputs.subspan(1))
    if (ColumnsOf(expert) != ColumnsOf(first))
      place.Reject(fmt::format("mixes experts of one width, but has {} and {}", Describe(first),
                               Describe(expert)));
  return ColumnsOf(first);
}

class GateBlock final : public Block {
 public:
  explicit GateBlock(const BlockPlace& place)
      : Block({{place.name, WidthOfExperts(place)}}),
        in_(ColumnsOf(place.inputs.front())),
        width_(ColumnsOf(shape())),
        experts_(std::ssize(place.inputs) - 1),
        weight_(place.parameters.Add(place.name + ".weight", {experts_, in_},
                                     Initializer::kXavierNormal)),
        shares_(place.buffers.Add(experts_, Precision::kFloat32)),
        d_logits_(place.buffers.Add(experts_)),
        row_(place.buffers.AddRow(2 * (width_ + experts_))) {}

  double Flops(bool d_inputs) const override {
    return (d_inputs ? 6.0 : 4.0) * static_cast<double>(in_ * experts_) +
           5.0 * static_cast<double>(width_ * experts_);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("gate");
    BlockedMatrix& shares = pass.buffers[shares_];
    Gemm(*inputs.front(), pass.parameters.weight(weight_).transposed, {}, &shares);
    const OfSample of = Values(pass);
    for (int64_t i = 0; i < output->rows(); ++i) {
      shares.GetRow(i, 0, of.shares, experts_);
      Softmax(of.shares);
      shares.SetRow(i, 0, of.shares, experts_);
      std::fill_n(of.d, width_, 0.0f);
      for (int64_t e = 0; e < experts_; ++e) {
        inputs[Expert(e)]->GetRow(i, 0, of.expert, width_);
        for (int64_t c = 0; c < width_; ++c) of.d[c] += of.shares[e] * of.expert[c];
      }
      output->SetRow(i, 0, of.d, width_);
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("gate");
    BlockedMatrix& d_logits = pass.buffers[d_logits_];
    const OfSample of = Values(pass);
    for (int64_t i = 0; i < output.rows(); ++i) {
      pass.buffers[shares_].GetRow(i, 0, of.shares, experts_);
      d_output->GetRow(i, 0, of.d, width_);
      float mean = 0;
      for (int64_t e = 0; e < experts_; ++e) {
        inputs[Expert(e)]->GetRow(i, 0, of.expert, width_);
        of.d_logits[e] = ProductOf(of.d, of.expert, width_);
        mean += of.shares[e] * of.d_logits[e];
        if (d_inputs[Expert(e)] == nullptr) continue;
        for (int64_t c = 0; c < width_; ++c) of.expert[c] = of.shares[e] * of.d[c];
        d_inputs[Expert(e)]->SetRow(i, 0, of.expert, width_);
      }
      for (int64_t e = 0; e < experts_; ++e)
        of.d_logits[e] = of.shares[e] * (of.d_logits[e] - mean);
      d_logits.SetRow(i, 0, of.d_logits, experts_);
    }
    gradients->Add(d_logits, *inputs.front(), weight_, std::nullopt);
    if (d_inputs.front() != nullptr)
      Gemm(d_logits, pass.parameters.weight(weight_).straight, {}, d_inputs.front());
  }

 private:
  struct OfSample {
    float *d, *expert, *shares, *d_logits;  // d: the sum, or its gradient
  };
  OfSample Values(const BlockPass& pass) const {
    float* const d = pass.rows[row_].data();
    float* const shares = d + 2 * width_;
    return {.d = d, .expert = d + width_, .shares = shares, .d_logits = shares + experts_};
  }
  static size_t Expert(int64_t e) { return static_cast<size_t>(e + 1); }  // its input

  void Softmax(float* x) const {
    const float most = *std::max_element(x, x + experts_);
    float sum = 0;
    for (int64_t e = 0; e < experts_; ++e) {
      x[e] = static_cast<float>(std::exp(double{x[e]} - double{most}));
      sum += x[e];
    }
    for (int64_t e = 0; e < experts_; ++e) x[e] /= sum;
  }

  int64_t in_, width_, experts_;
  int64_t weight_;         // offset of the parameter
  size_t shares_;          // buffer of the softmax between forward and backward
  size_t d_logits_, row_;  // buffer; row of one sample's values
};

}  // namespace

std::unique_ptr<Block> Gate::Make(const BlockPlace& place) const {
  return std::make_unique<GateBlock>(place);
}

}  // namespace renzan
