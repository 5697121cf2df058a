#include "renzan/model/blocks/mlp.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/nn/activation.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

class MlpBlock final : public Block {
 public:
  MlpBlock(const Mlp& options, const BlockPlace& place)
      : Block({{place.name, options.layers.back()}}),
        linear_output_(options.linear_output),
        activation_(ActivationNamed(options.activation)) {
    int64_t in = ColumnsOf(place.input()), widest = in;
    for (size_t i = 0; i < options.layers.size(); ++i) {
      const bool last = i + 1 == options.layers.size();
      Layer layer{.name = fmt::format("{}.{}", place.name, i), .in = in, .out = options.layers[i]};
      layer.weight = place.parameters.Add(layer.name + ".weight", {layer.out, layer.in},
                                          Initializer::kXavierNormal);
      layer.bias =
          place.parameters.Add(layer.name + ".bias", {layer.out}, Initializer::kBiasNormal);
      layer.activates = !last || !linear_output_;
      if (!last) layer.activations = place.buffers.Add(layer.out);
      if (layer.activates && activation_ != Activation::kRelu)
        layer.sums = place.buffers.Add(layer.out);
      if (!last && options.dropout > 0)
        layer.dropout.emplace(DropoutOptions{options.dropout, place.seed}, layer.name);
      in = layer.out;
      widest = std::max(widest, in);
      layers_.push_back(std::move(layer));
    }
    for (size_t& gradient : gradients_) gradient = place.buffers.Add(widest);
  }

  bool GivesLogit() const override { return linear_output_ && ColumnsOf(shape()) == 1; }

  double Flops(bool d_inputs) const override {
    // Products per weight: forward, its own gradient, and its input's.
    double flops = 0;
    for (const Layer& layer : layers_)
      flops += (d_inputs || &layer != &layers_.front() ? 6.0 : 4.0) *
               static_cast<double>(layer.in * layer.out);
    return flops;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const BlockedMatrix* in = inputs.front();
    for (const Layer& layer : layers_) {
      const TraceSpan span(layer.name.c_str());
      BlockedMatrix* out = &layer == &layers_.back() ? output : &pass.buffers[layer.activations];
      const bool is_fused = !layer.activates || activation_ == Activation::kRelu;
      BlockedMatrix* sums = is_fused ? out : &pass.buffers[layer.sums];
      Gemm(*in, pass.parameters.weight(layer.weight).transposed,
           {.bias = pass.parameters.vector(layer.bias), .relu = layer.activates && is_fused}, sums);
      if (!is_fused) Activate(activation_, *sums, out);
      if (layer.dropout && pass.training) layer.dropout->Apply(*pass.training, out);
      in = out;
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* dy, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const bool is_relu = activation_ == Activation::kRelu;
    if (layers_.back().activates)
      is_relu ? ReluBackward(output, dy)
              : ActivateBackward(activation_, pass.buffers[layers_.back().sums], dy);
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const TraceSpan span(layer.name.c_str());
      const BlockedMatrix& in = i == 0 ? *inputs.front() : pass.buffers[layers_[i - 1].activations];
      gradients->Add(*dy, in, layer.weight, layer.bias);
      BlockedMatrix* d_in = i == 0 ? d_inputs.front() : &pass.buffers[gradients_[i % 2]];
      if (d_in == nullptr) return;
      GemmOptions options;
      if (i > 0) d_in->Reshape(in.rows(), in.columns(), in.precision());
      if (i > 0 && is_relu) {
        // The gradient through the ReLU of the layer below. Activations that its dropout zeroed
        // look like those that its ReLU zeroed.
        const Layer& below = layers_[i - 1];
        options.mask = &in;
        if (below.dropout && pass.training) options.mask_scale = below.dropout->scale();
      }
      Gemm(*dy, pass.parameters.weight(layer.weight).straight, options, d_in);
      if (i > 0 && !is_relu) {
        const Layer& below = layers_[i - 1];
        if (below.dropout && pass.training) below.dropout->Apply(*pass.training, d_in);
        ActivateBackward(activation_, pass.buffers[below.sums], d_in);
      }
      dy = d_in;
    }
  }

 private:
  struct Layer {
    std::string name;  // "top.0"
    int64_t in = 0, out = 0;
    int64_t weight = 0, bias = 0;  // offsets of the parameters
    size_t activations = 0;        // buffers: of its output, except of the last layer
    size_t sums = 0;               // W x + b, if the activation is not ReLU
    bool activates = true;
    std::optional<Dropout> dropout;  // after the activation
  };
  bool linear_output_;
  Activation activation_;
  std::vector<Layer> layers_;
  size_t gradients_[2];  // buffers of the activations' gradients, alternating
};

}  // namespace

void Mlp::Describe(ConfigFields& fields) {
  fields.Field("layers", &layers, "their widths");
  fields.Require(!layers.empty() &&
                     std::all_of(layers.begin(), layers.end(),
                                 [](int64_t width) { return width >= 1 && width <= kMaxWidth; }),
                 "layers", "there must be at least one, of 1 to 1048576 units each");
  fields.Choice("activation", &activation, ActivationNames());
  fields.Field("linear_output", &linear_output,
               "the last layer has no activation: with one unit, its output is a logit");
  fields.Range("dropout", &dropout, 0, 1, "after every layer but the last, in training");
  fields.Require(dropout < 1, "dropout", "must be below 1");
}

std::unique_ptr<Block> Mlp::Make(const BlockPlace& place) const {
  CHECK(!layers.empty());
  return std::make_unique<MlpBlock>(*this, place);
}

}  // namespace renzan
