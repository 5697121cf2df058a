#include "renzan/model/blocks/cross.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

class CrossBlock final : public Block {
 public:
  CrossBlock(const Cross& options, const BlockPlace& place)
      : Block({{place.name, ColumnsOf(place.input())}}), rank_(options.rank) {
    const int64_t width = ColumnsOf(shape());
    for (int l = 0; l < options.layers; ++l) {
      const std::string prefix = fmt::format("{}.{}", place.name, l);
      Layer layer{};
      ParameterLayout& parameters = place.parameters;
      if (rank_ > 0)
        layer.v = parameters.Add(prefix + ".v", {rank_, width}, Initializer::kXavierNormal);
      layer.w = parameters.Add(prefix + ".w", {width, rank_ > 0 ? rank_ : width},
                               Initializer::kXavierNormal);
      layer.bias = parameters.Add(prefix + ".bias", {width}, Initializer::kZero);
      if (l + 1 < options.layers) layer.output = place.buffers.Add(width);
      if (rank_ > 0) layer.projected = place.buffers.Add(rank_);
      layer.crossed = place.buffers.Add(width);
      layers_.push_back(layer);
    }
    d_crossed_ = place.buffers.Add(width);
    if (rank_ > 0) d_projected_ = place.buffers.Add(rank_);
    if (!place.d_inputs) d_x0_ = place.buffers.Add(width);
  }

  double Flops(bool) const override {
    const int64_t width = ColumnsOf(shape());
    const int64_t weights = rank_ > 0 ? 2 * width * rank_ : width * width;
    return 6.0 * static_cast<double>(std::ssize(layers_) * weights);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("cross network");
    const BlockedMatrix &x0 = *inputs.front(), *x = &x0;
    if (layers_.empty()) return output->SetColumns(0, x0, 0, x0.columns());
    for (const Layer& layer : layers_) {
      BlockedMatrix& crossed = pass.buffers[layer.crossed];
      BlockedMatrix* next = &layer == &layers_.back() ? output : &pass.buffers[layer.output];
      const BlockedMatrix* in = x;
      if (rank_ > 0) {
        Gemm(*x, pass.parameters.weight(layer.v).transposed, {}, &pass.buffers[layer.projected]);
        in = &pass.buffers[layer.projected];
      }
      Gemm(*in, pass.parameters.weight(layer.w).transposed,
           {.bias = pass.parameters.vector(layer.bias)}, &crossed);
      MultiplyAdd(x0, crossed, *x, next);
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
    BlockedMatrix& d_crossed = pass.buffers[d_crossed_];
    for (size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      const BlockedMatrix& x = l == 0 ? x0 : pass.buffers[layers_[l - 1].output];
      MultiplyAdd(*dy, pass.buffers[layer.crossed], *d_x0, d_x0);
      Multiply(*dy, x0, &d_crossed);
      // d x_l = d x_{l+1} (through the residual) + d_crossed · W, or + d_projected · V
      if (rank_ == 0) {
        gradients->Add(d_crossed, x, layer.w, layer.bias);
        Gemm(d_crossed, pass.parameters.weight(layer.w).straight, {.accumulate = true}, dy);
        continue;
      }
      BlockedMatrix& d_projected = pass.buffers[d_projected_];
      gradients->Add(d_crossed, pass.buffers[layer.projected], layer.w, layer.bias);
      Gemm(d_crossed, pass.parameters.weight(layer.w).straight, {}, &d_projected);
      gradients->Add(d_projected, x, layer.v, std::nullopt);
      Gemm(d_projected, pass.parameters.weight(layer.v).straight, {.accumulate = true}, dy);
    }
    Add(*dy, d_x0);
  }

 private:
  struct Layer {
    int64_t v, w, bias;         // offsets of the parameters; no v with whole matrices
    size_t output = 0;          // buffers: x_{l+1}, except of the last layer
    size_t projected, crossed;  // V_l x_l, not with whole matrices; W_l … + b_l
  };
  int64_t rank_;
  std::vector<Layer> layers_;
  size_t d_crossed_, d_projected_ = 0, d_x0_ = 0;  // buffers
};

}  // namespace

void Cross::Describe(ConfigFields& fields) {
  fields.Range("layers", &layers, 0, 64);
  fields.Range("rank", &rank, 0, 65536, "0: whole matrices");
  fields.Choice("kind", &kind, {"matrix", "vector"});
  fields.Require(kind == "matrix" || rank == 0, "rank", "must be 0 with vectors");
  fields.Range("experts", &experts, 0, kMostExperts, "a mixture of so many products of this rank");
  fields.Require(experts == 0 || rank > 0, "experts", "need matrices of a low rank: set rank");
}

std::unique_ptr<Block> Cross::Make(const BlockPlace& place) const {
  if (kind == "vector") return MakeVectorCross(*this, place);
  if (experts > 0) return MakeExpertsCross(*this, place);
  return std::make_unique<CrossBlock>(*this, place);
}

}  // namespace renzan
