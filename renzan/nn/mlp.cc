#include "renzan/nn/mlp.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {

Mlp::Mlp(const std::string& name, std::vector<int64_t> sizes, LastLayer last,
         ParameterLayout* layout, const DropoutOptions& dropout)
    : sizes_(std::move(sizes)), last_(last) {
  CHECK(sizes_.size() >= 2);
  for (size_t i = 0; i + 1 < sizes_.size(); ++i) {
    const std::string prefix = fmt::format("{}.{}", name, i);
    Layer layer{};
    layer.name = prefix;
    layer.in = sizes_[i];
    layer.out = sizes_[i + 1];
    layer.weight =
        layout->Add(prefix + ".weight", {layer.out, layer.in}, Initializer::kXavierNormal);
    layer.bias = layout->Add(prefix + ".bias", {layer.out}, Initializer::kBiasNormal);
    layer.relu = i + 2 < sizes_.size() || last == LastLayer::kRelu;
    if (dropout.rate > 0 && i + 2 < sizes_.size()) layer.dropout.emplace(dropout, prefix);
    layers_.push_back(layer);
  }
}

Mlp::Workspace Mlp::MakeWorkspace(int64_t n, Precision precision) const {
  Workspace workspace;
  for (const Layer& layer : layers_) workspace.activations.emplace_back(n, layer.out, precision);
  if (last_ == LastLayer::kLinear) workspace.activations.back().Reshape(n, out());
  const int64_t widest = *std::max_element(sizes_.begin(), sizes_.end());
  for (BlockedMatrix& gradient : workspace.gradients) gradient.Reshape(n, widest, precision);
  return workspace;
}

void Mlp::Forward(const PackedParameters& parameters, const BlockedMatrix& x,
                  Workspace* workspace) const {
  const BlockedMatrix* in = &x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const TraceSpan span(layer.name.c_str());
    BlockedMatrix& out = workspace->activations[i];
    Gemm(*in, parameters.weight(layer.weight).transposed,
         {.bias = parameters.vector(layer.bias), .relu = layer.relu}, &out);
    if (layer.dropout && workspace->training) layer.dropout->Apply(*workspace->training, &out);
    in = &out;
  }
}

void Mlp::Backward(const PackedParameters& parameters, const BlockedMatrix& x, BlockedMatrix* dy,
                   WeightGradients* gradients, BlockedMatrix* dx, Workspace* workspace) const {
  if (layers_.back().relu) ReluBackward(workspace->output(), dy);
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const TraceSpan span(layer.name.c_str());
    const BlockedMatrix& in = i == 0 ? x : workspace->activations[i - 1];
    gradients->Add(*dy, in, layer.weight, layer.bias);
    BlockedMatrix* d_in = i == 0 ? dx : &workspace->gradients[i % 2];
    if (d_in == nullptr) return;
    GemmOptions options;
    if (i > 0) {
      // The gradient through the ReLU of the layer below. Activations that its dropout zeroed look
      // like those that its ReLU zeroed.
      const Layer& below = layers_[i - 1];
      options.mask = &in;
      if (below.dropout && workspace->training) options.mask_scale = below.dropout->scale();
      d_in->Reshape(in.rows(), in.columns(), in.precision());
    }
    Gemm(*dy, parameters.weight(layer.weight).straight, options, d_in);
    dy = d_in;
  }
}

}  // namespace renzan
