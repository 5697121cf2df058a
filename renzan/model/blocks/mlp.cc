#include "renzan/model/blocks/mlp.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/activation_layer.h"
#include "renzan/model/blocks/normalization.h"
#include "renzan/model/blocks/per_vector.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

class MlpBlock final : public Block {
 public:
  MlpBlock(const Mlp& options, const BlockPlace& place)
      : Block({{place.name, options.layers.back()}}), linear_output_(options.linear_output) {
    int64_t in = ColumnsOf(place.input()), widest = in;
    for (size_t i = 0; i < options.layers.size(); ++i) {
      layers_.push_back(MakeLayer(options, place, i, in));
      in = options.layers[i];
      widest = std::max(widest, in);
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
      BlockedMatrix* sums = layer.activation ? &pass.buffers[layer.sums] : out;
      Gemm(*in, pass.parameters.weight(layer.weight).transposed,
           {.bias = pass.parameters.vector(layer.bias), .relu = layer.is_fused_relu}, sums);
      if (layer.activation) {
        BlockedMatrix* activated = &pass.buffers[layer.activated];
        if (layer.normalization) layer.normalization->Forward(pass, *sums, activated);
        if (layer.adds_input) Add(*in, activated);
        layer.activation->Forward(pass, *activated, out);
      }
      if (layer.dropout && pass.training) layer.dropout->Apply(*pass.training, out);
      in = out;
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* dy, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    if (layers_.back().is_fused_relu) ReluBackward(output, dy);
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const TraceSpan span(layer.name.c_str());
      const BlockedMatrix& in = i == 0 ? *inputs.front() : pass.buffers[layers_[i - 1].activations];
      BlockedMatrix* d_in = i == 0 ? d_inputs.front() : &pass.buffers[gradients_[i % 2]];
      if (i > 0) d_in->Reshape(in.rows(), in.columns(), in.precision());
      ThroughActivation(layer, pass, dy, gradients);
      if (layer.adds_input) d_in->SetColumns(0, *dy, 0, dy->columns());
      if (layer.normalization)
        layer.normalization->Backward(pass, pass.buffers[layer.sums], *dy, gradients, dy);
      gradients->Add(*dy, in, layer.weight, layer.bias);
      if (d_in == nullptr) return;
      GemmOptions options{.accumulate = layer.adds_input};
      if (i > 0 && layers_[i - 1].is_fused_relu) {
        // The gradient through the ReLU of the layer below. Activations that its dropout zeroed
        // look like those that its ReLU zeroed.
        const Layer& below = layers_[i - 1];
        options.mask = &in;
        if (below.dropout && pass.training) options.mask_scale = below.dropout->scale();
      }
      Gemm(*dy, pass.parameters.weight(layer.weight).straight, options, d_in);
      dy = d_in;
    }
  }

 private:
  struct Layer {
    std::string name;  // "top.0"
    int64_t in = 0, out = 0;
    int64_t weight = 0, bias = 0;  // offsets of the parameters
    // A ReLU that the product applies, so that nothing needs its sums; otherwise `activation`, or
    // neither in a linear layer.
    bool is_fused_relu = false;
    std::unique_ptr<ActivationLayer> activation;
    std::unique_ptr<Normalization> normalization;  // before it; null: none
    bool adds_input = false;                       // after that
    std::optional<Dropout> dropout;                // after the activation
    size_t activations = 0;          // buffers: of its output, except of the last layer
    size_t sums = 0, activated = 0;  // W x + b, and what the activation takes
  };

  static Layer MakeLayer(const Mlp& options, const BlockPlace& place, size_t i, int64_t in) {
    const bool last = i + 1 == options.layers.size();
    Layer layer{.name = fmt::format("{}.{}", place.name, i), .in = in, .out = options.layers[i]};
    layer.weight = place.parameters.Add(layer.name + ".weight", {layer.out, layer.in},
                                        Initializer::kXavierNormal);
    layer.bias = place.parameters.Add(layer.name + ".bias", {layer.out}, Initializer::kBiasNormal);
    if (!last) layer.activations = place.buffers.Add(layer.out);
    if (!last && options.dropout > 0)
      layer.dropout.emplace(DropoutOptions{options.dropout, place.seed}, layer.name);
    if (last && options.linear_output) return layer;
    layer.is_fused_relu =
        options.activation == "relu" && options.normalization == "none" && !options.residual;
    if (layer.is_fused_relu) return layer;
    layer.sums = layer.activated = place.buffers.Add(layer.out);
    layer.normalization =
        MakeNormalization(options.normalization, place, layer.name + ".norm", layer.out);
    if (layer.normalization) layer.activated = place.buffers.Add(layer.out);
    layer.activation = MakeActivationLayer(options.activation, place, layer.name, layer.out);
    layer.adds_input = options.residual && i > 0;
    if (layer.adds_input && layer.in != layer.out)
      place.Reject(
          fmt::format("adds the inputs of its layers to their sums (residual), so all must "
                      "have one width, but layer {} takes {} and gives {}",
                      i, layer.in, layer.out));
    return layer;
  }

  // From the gradient of a layer's output to that of what its activation takes, unless a product
  // has done so.
  static void ThroughActivation(const Layer& layer, const BlockPass& pass, BlockedMatrix* d,
                                WeightGradients* gradients) {
    if (!layer.activation) return;
    if (layer.dropout && pass.training) layer.dropout->Apply(*pass.training, d);
    layer.activation->Backward(pass, pass.buffers[layer.activated], d, gradients);
  }

  bool linear_output_;
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
  fields.Choice("activation", &activation, ActivationLayerNames());
  fields.Field("linear_output", &linear_output,
               "the last layer has no activation: with one unit, its output is a logit");
  fields.Range("dropout", &dropout, 0, 1, "after every layer but the last, in training");
  fields.Require(dropout < 1, "dropout", "must be below 1");
  fields.Choice("normalization", &normalization, NormalizationNames());
  fields.Field("residual", &residual,
               "layers but the first add their input to what their activation takes");
  fields.Field("per_vector", &per_vector, "the same layers for each vector of the input");
}

std::unique_ptr<Block> Mlp::Make(const BlockPlace& place) const {
  CHECK(!layers.empty());
  if (!per_vector) return std::make_unique<MlpBlock>(*this, place);
  if (place.inputs.size() == 1 && place.SequenceOf(0) &&
      (normalization == "batch" || activation == "dice"))
    place.Reject(
        "normalizes over samples, of which a sequence has another number of positions each time: "
        "use "
        "normalization: layer, and another activation than dice");
  return MakePerVector(place, [this](const BlockPlace& of_one) {
    return std::make_unique<MlpBlock>(*this, of_one);
  });
}

}  // namespace renzan
