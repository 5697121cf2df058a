#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "renzan/base/trace.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/nn/activation.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

class ExpertsCrossBlock final : public Block {
 public:
  ExpertsCrossBlock(const Cross& options, const BlockPlace& place)
      : Block({{place.name, ColumnsOf(place.input())}}),
        width_(ColumnsOf(shape())),
        rank_(options.rank),
        num_experts_(options.experts) {
    for (int l = 0; l < options.layers; ++l) {
      layers_.push_back(MakeLayer(options, place, fmt::format("{}.{}", place.name, l)));
      if (l + 1 < options.layers) layers_.back().output = place.buffers.Add(width_);
    }
    d_mixed_ = place.buffers.Add(width_);
    d_expert_ = place.buffers.Add(width_);
    d_gates_ = place.buffers.Add(num_experts_);
    for (size_t& d : d_low_) d = place.buffers.Add(rank_);
    row_ = place.buffers.AddRow(std::max({2 * width_, 2 * rank_, 2 * num_experts_}));
    if (!place.d_inputs) d_x0_ = place.buffers.Add(width_);
  }

  double Flops(bool) const override {
    const int64_t weights = num_experts_ * (2 * width_ * rank_ + rank_ * rank_ + width_);
    return 6.0 * static_cast<double>(std::ssize(layers_) * weights);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("cross network");
    const BlockedMatrix &x0 = *inputs.front(), *x = &x0;
    if (layers_.empty()) return output->SetColumns(0, x0, 0, width_);
    for (const Layer& layer : layers_) {
      Gemm(*x, pass.parameters.weight(layer.gate).transposed, {}, &pass.buffers[layer.gates]);
      Softmax(pass, &pass.buffers[layer.gates]);
      for (const Expert& expert : layer.experts) {
        BlockedMatrix &low = pass.buffers[expert.low], &turned = pass.buffers[expert.turned];
        Gemm(*x, pass.parameters.weight(expert.v).transposed, {}, &low);
        Activate(Activation::kTanh, low, &low);
        Gemm(low, pass.parameters.weight(expert.c).transposed, {}, &turned);
        Activate(Activation::kTanh, turned, &turned);
        Gemm(turned, pass.parameters.weight(expert.w).transposed, {}, &pass.buffers[expert.high]);
      }
      Mix(pass, layer);
      BlockedMatrix* const next = &layer == &layers_.back() ? output : &pass.buffers[layer.output];
      MultiplyAdd(x0, pass.buffers[layer.mixed], *x, next);
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
    BlockedMatrix &d_mixed = pass.buffers[d_mixed_], &d_gates = pass.buffers[d_gates_];
    for (size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      const BlockedMatrix& x = l == 0 ? x0 : pass.buffers[layers_[l - 1].output];
      MultiplyAdd(*dy, pass.buffers[layer.mixed], *d_x0, d_x0);
      Multiply(*dy, x0, &d_mixed);
      gradients->AddVector(d_mixed, layer.bias);
      ThroughGates(pass, layer, d_mixed, &d_gates);
      gradients->Add(d_gates, x, layer.gate, std::nullopt);
      Gemm(d_gates, pass.parameters.weight(layer.gate).straight, {.accumulate = true}, dy);
      for (int64_t e = 0; e < num_experts_; ++e)
        ThroughExpert(pass, layer, e, x, d_mixed, dy, gradients);
    }
    Add(*dy, d_x0);
  }

 private:
  struct Expert {
    int64_t v, c, w;           // offsets of the parameters
    size_t low, turned, high;  // buffers: tanh(V x), tanh(C low), W turned
  };
  struct Layer {
    int64_t gate, bias;  // offsets of the parameters
    std::vector<Expert> experts;
    size_t gates, mixed;  // buffers: softmax(G x), Σ gate · high + bias
    size_t output = 0;    // x_{l+1}, except of the last layer
  };

  static Layer MakeLayer(const Cross& options, const BlockPlace& place, const std::string& prefix) {
    const int64_t width = ColumnsOf(place.input()), rank = options.rank;
    ParameterLayout& parameters = place.parameters;
    const auto matrix = [&](const std::string& name, int64_t out, int64_t in) {
      return parameters.Add(name, {out, in}, Initializer::kXavierNormal);
    };
    Layer layer{};
    layer.gate = matrix(prefix + ".gate", options.experts, width);
    for (int e = 0; e < options.experts; ++e) {
      const std::string name = fmt::format("{}.{}", prefix, e);
      layer.experts.push_back({.v = matrix(name + ".v", rank, width),
                               .c = matrix(name + ".c", rank, rank),
                               .w = matrix(name + ".w", width, rank),
                               .low = place.buffers.Add(rank),
                               .turned = place.buffers.Add(rank),
                               .high = place.buffers.Add(width)});
    }
    layer.bias = parameters.Add(prefix + ".bias", {width}, Initializer::kZero);
    layer.gates = place.buffers.Add(options.experts, Precision::kFloat32);
    layer.mixed = place.buffers.Add(width);
    return layer;
  }

  void Softmax(const BlockPass& pass, BlockedMatrix* gates) const {
    float* const row = pass.rows[row_].data();
    for (int64_t i = 0; i < gates->rows(); ++i) {
      gates->GetRow(i, 0, row, num_experts_);
      const float largest = *std::max_element(row, row + num_experts_);
      float sum = 0;
      for (int64_t e = 0; e < num_experts_; ++e) {
        row[e] = static_cast<float>(std::exp(double{row[e]} - double{largest}));
        sum += row[e];
      }
      for (int64_t e = 0; e < num_experts_; ++e) row[e] /= sum;
      gates->SetRow(i, 0, row, num_experts_);
    }
  }

  void Mix(const BlockPass& pass, const Layer& layer) const {
    const float* const bias = pass.parameters.vector(layer.bias);
    const BlockedMatrix& gates = pass.buffers[layer.gates];
    BlockedMatrix& mixed = pass.buffers[layer.mixed];
    float *const sum = pass.rows[row_].data(), *const high = sum + width_;
    for (int64_t i = 0; i < mixed.rows(); ++i) {
      std::copy_n(bias, width_, sum);
      for (int64_t e = 0; e < num_experts_; ++e) {
        const float gate = gates.at(i, e);
        pass.buffers[layer.experts[static_cast<size_t>(e)].high].GetRow(i, 0, high, width_);
        for (int64_t c = 0; c < width_; ++c) sum[c] += gate * high[c];
      }
      mixed.SetRow(i, 0, sum, width_);
    }
  }

  // The gradient of what the softmax takes.
  void ThroughGates(const BlockPass& pass, const Layer& layer, const BlockedMatrix& d_mixed,
                    BlockedMatrix* d_gates) const {
    const BlockedMatrix& gates = pass.buffers[layer.gates];
    float *const d = pass.rows[row_].data(), *const high = d + width_;
    for (int64_t i = 0; i < d_mixed.rows(); ++i) {
      d_mixed.GetRow(i, 0, d, width_);
      std::array<float, kMostExperts> of_gates;
      float mean = 0;
      for (int64_t e = 0; e < num_experts_; ++e) {
        pass.buffers[layer.experts[static_cast<size_t>(e)].high].GetRow(i, 0, high, width_);
        float product = 0;
        for (int64_t c = 0; c < width_; ++c) product += d[c] * high[c];
        of_gates[static_cast<size_t>(e)] = product;
        mean += gates.at(i, e) * product;
      }
      for (int64_t e = 0; e < num_experts_; ++e)
        d_gates->Set(i, e, gates.at(i, e) * (of_gates[static_cast<size_t>(e)] - mean));
    }
  }

  // Adds to dy, which becomes the gradient of x.
  void ThroughExpert(const BlockPass& pass, const Layer& layer, int64_t e, const BlockedMatrix& x,
                     const BlockedMatrix& d_mixed, BlockedMatrix* dy,
                     WeightGradients* gradients) const {
    const Expert& expert = layer.experts[static_cast<size_t>(e)];
    const BlockedMatrix &low = pass.buffers[expert.low], &turned = pass.buffers[expert.turned];
    BlockedMatrix &d_high = pass.buffers[d_expert_], &d_turned = pass.buffers[d_low_[0]],
                  &d_low = pass.buffers[d_low_[1]];
    float* const row = pass.rows[row_].data();
    for (int64_t i = 0; i < d_mixed.rows(); ++i) {
      const float gate = pass.buffers[layer.gates].at(i, e);
      d_mixed.GetRow(i, 0, row, width_);
      for (int64_t c = 0; c < width_; ++c) row[c] *= gate;
      d_high.SetRow(i, 0, row, width_);
    }
    gradients->Add(d_high, turned, expert.w, std::nullopt);
    Gemm(d_high, pass.parameters.weight(expert.w).straight, {}, &d_turned);
    ThroughTanh(pass, turned, &d_turned);
    gradients->Add(d_turned, low, expert.c, std::nullopt);
    Gemm(d_turned, pass.parameters.weight(expert.c).straight, {}, &d_low);
    ThroughTanh(pass, low, &d_low);
    gradients->Add(d_low, x, expert.v, std::nullopt);
    Gemm(d_low, pass.parameters.weight(expert.v).straight, {.accumulate = true}, dy);
  }

  // d *= 1 − y², where y is a tanh.
  void ThroughTanh(const BlockPass& pass, const BlockedMatrix& y, BlockedMatrix* d) const {
    float *const of_y = pass.rows[row_].data(), *const of_d = of_y + rank_;
    for (int64_t i = 0; i < y.rows(); ++i) {
      y.GetRow(i, 0, of_y, rank_);
      d->GetRow(i, 0, of_d, rank_);
      for (int64_t c = 0; c < rank_; ++c) of_d[c] *= 1 - of_y[c] * of_y[c];
      d->SetRow(i, 0, of_d, rank_);
    }
  }

  int64_t width_, rank_, num_experts_;
  std::vector<Layer> layers_;
  size_t d_mixed_, d_expert_, d_gates_, d_low_[2], d_x0_ = 0;  // buffers
  size_t row_;                                                 // of a sample
};

}  // namespace

std::unique_ptr<Block> MakeExpertsCross(const Cross& options, const BlockPlace& place) {
  return std::make_unique<ExpertsCrossBlock>(options, place);
}

}  // namespace renzan
