#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/trace.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

class VectorCrossBlock final : public Block {
 public:
  VectorCrossBlock(const Cross& options, const BlockPlace& place)
      : Block({{place.name, ColumnsOf(place.input())}}),
        width_(ColumnsOf(shape())),
        d_weights_(place.buffers.Add(1)),
        row_(place.buffers.AddRow(3 * width_)) {
    for (int l = 0; l < options.layers; ++l) {
      const std::string prefix = fmt::format("{}.{}", place.name, l);
      Layer layer{};
      layer.w = place.parameters.Add(prefix + ".w", {1, width_}, Initializer::kXavierNormal);
      layer.bias = place.parameters.Add(prefix + ".bias", {width_}, Initializer::kZero);
      layer.weights = place.buffers.Add(1, Precision::kFloat32);
      if (l + 1 < options.layers) layer.output = place.buffers.Add(width_);
      layers_.push_back(layer);
    }
    if (!place.d_inputs) d_x0_ = place.buffers.Add(width_);
  }

  double Flops(bool) const override {
    return 14.0 * static_cast<double>(std::ssize(layers_) * width_);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("cross network");
    const BlockedMatrix &x0 = *inputs.front(), *x = &x0;
    if (layers_.empty()) return output->SetColumns(0, x0, 0, width_);
    float *const of_x0 = pass.rows[row_].data(), *const of_x = of_x0 + width_;
    for (const Layer& layer : layers_) {
      BlockedMatrix& weights = pass.buffers[layer.weights];
      BlockedMatrix* const next = &layer == &layers_.back() ? output : &pass.buffers[layer.output];
      Gemm(*x, pass.parameters.weight(layer.w).transposed, {}, &weights);
      const float* const bias = pass.parameters.vector(layer.bias);
      for (int64_t i = 0; i < x0.rows(); ++i) {
        const float weight = weights.at(i, 0);
        x0.GetRow(i, 0, of_x0, width_);
        x->GetRow(i, 0, of_x, width_);
        for (int64_t c = 0; c < width_; ++c) of_x[c] += of_x0[c] * weight + bias[c];
        next->SetRow(i, 0, of_x, width_);
      }
      x = next;
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* dy,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("cross network");
    const BlockedMatrix& x0 = *inputs.front();
    BlockedMatrix* d_x0 = d_inputs.front() ? d_inputs.front() : &pass.buffers[d_x0_];
    std::fill_n(d_x0->data(), d_x0->size(), 0.0f);
    BlockedMatrix& d_weights = pass.buffers[d_weights_];
    for (size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      const BlockedMatrix& x = l == 0 ? x0 : pass.buffers[layers_[l - 1].output];
      ThroughProduct(pass, x0, pass.buffers[layer.weights], *dy, &d_weights, d_x0);
      gradients->AddVector(*dy, layer.bias);
      gradients->Add(d_weights, x, layer.w, std::nullopt);
      // d x_l = d x_{l+1} (through the residual) + d_weight · w
      Gemm(d_weights, pass.parameters.weight(layer.w).straight, {.accumulate = true}, dy);
    }
    Add(*dy, d_x0);
  }

 private:
  struct Layer {
    int64_t w, bias;    // offsets of the parameters
    size_t weights;     // buffers: w_l · x_l
    size_t output = 0;  // x_{l+1}, except of the last layer
  };

  // d_weights = dy · x0 and d_x0 += dy · weight, for each sample.
  void ThroughProduct(const BlockPass& pass, const BlockedMatrix& x0, const BlockedMatrix& weights,
                      const BlockedMatrix& dy, BlockedMatrix* d_weights,
                      BlockedMatrix* d_x0) const {
    float *const of_x0 = pass.rows[row_].data(), *const d = of_x0 + width_, *const sum = d + width_;
    for (int64_t i = 0; i < x0.rows(); ++i) {
      const float weight = weights.at(i, 0);
      x0.GetRow(i, 0, of_x0, width_);
      dy.GetRow(i, 0, d, width_);
      d_x0->GetRow(i, 0, sum, width_);
      float d_weight = 0;
      for (int64_t c = 0; c < width_; ++c) {
        d_weight += d[c] * of_x0[c];
        sum[c] += d[c] * weight;
      }
      d_weights->Set(i, 0, d_weight);
      d_x0->SetRow(i, 0, sum, width_);
    }
  }

  int64_t width_;
  std::vector<Layer> layers_;
  size_t d_weights_, d_x0_ = 0;  // buffers
  size_t row_;                   // of a sample: up to three vectors
};

}  // namespace

std::unique_ptr<Block> MakeVectorCross(const Cross& options, const BlockPlace& place) {
  return std::make_unique<VectorCrossBlock>(options, place);
}

}  // namespace renzan
