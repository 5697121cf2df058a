#include "renzan/nn/mlp.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/matmul.h"

namespace renzan {

Mlp::Mlp(const std::string& name, std::vector<int64_t> sizes, LastLayer last,
         ParameterLayout* layout, const DropoutOptions& dropout)
    : sizes_(std::move(sizes)) {
  CHECK(sizes_.size() >= 2);
  for (size_t i = 0; i + 1 < sizes_.size(); ++i) {
    const std::string prefix = fmt::format("{}.{}", name, i);
    Layer layer{};
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

Mlp::Workspace Mlp::MakeWorkspace(int64_t n) const {
  Workspace workspace;
  for (size_t i = 0; i + 1 < layers_.size(); ++i)
    workspace.activations.emplace_back(static_cast<size_t>(n * layers_[i].out));
  const int64_t widest = *std::max_element(sizes_.begin(), sizes_.end());
  workspace.gradient_a = AlignedBuffer(static_cast<size_t>(n * widest));
  workspace.gradient_b = AlignedBuffer(static_cast<size_t>(n * widest));
  return workspace;
}

void Mlp::Forward(const float* parameters, int64_t n, const float* x, int64_t x_stride, float* y,
                  int64_t y_stride, Workspace* workspace) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    float* out = last ? y : workspace->activations[i].data();
    const int64_t out_stride = last ? y_stride : layer.out;
    Matmul(Transpose::kNo, Transpose::kYes, n, layer.out, layer.in, x, x_stride,
           parameters + layer.weight, layer.in, 0.0f, out, out_stride);
    (layer.relu ? AddBiasRelu : AddBias)(out, n, layer.out, out_stride, parameters + layer.bias);
    if (layer.dropout && workspace->training)
      layer.dropout->Apply(*workspace->training, n, layer.out, out, out_stride);
    x = out;
    x_stride = out_stride;
  }
}

void Mlp::Backward(const float* parameters, int64_t n, const float* x, int64_t x_stride,
                   const float* y, int64_t y_stride, float* dy, int64_t dy_stride, float* gradients,
                   float* dx, int64_t dx_stride, Workspace* workspace) const {
  float* next = workspace->gradient_a.data();
  float* other = workspace->gradient_b.data();
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    const float* out = last ? y : workspace->activations[i].data();
    const float* in = i == 0 ? x : workspace->activations[i - 1].data();
    const int64_t in_stride = i == 0 ? x_stride : layer.in;
    // Dropped activations are 0, like those that the ReLU zeroed.
    const bool dropped = layer.dropout && workspace->training;
    if (layer.relu)
      ReluBackward(out, last ? y_stride : layer.out, dy, dy_stride, n, layer.out,
                   dropped ? layer.dropout->scale() : 1.0f);
    SumRows(dy, n, layer.out, dy_stride, gradients + layer.bias);
    Matmul(Transpose::kYes, Transpose::kNo, layer.out, layer.in, n, dy, dy_stride, in, in_stride,
           0.0f, gradients + layer.weight, layer.in);
    float* d_in = i == 0 ? dx : next;
    if (d_in == nullptr) return;
    const int64_t d_in_stride = i == 0 ? dx_stride : layer.in;
    Matmul(Transpose::kNo, Transpose::kNo, n, layer.in, layer.out, dy, dy_stride,
           parameters + layer.weight, layer.in, 0.0f, d_in, d_in_stride);
    dy = d_in;
    dy_stride = d_in_stride;
    std::swap(next, other);
  }
}

}  // namespace renzan
