#include "renzan/model/low_rank_cross.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {

LowRankCross::LowRankCross(int64_t width, int64_t rank, int num_layers, ParameterLayout* layout)
    : width_(width), rank_(rank) {
  for (int l = 0; l < num_layers; ++l) {
    const std::string prefix = fmt::format("cross.{}", l);
    Layer layer{};
    layer.v = layout->Add(prefix + ".v", {rank, width}, Initializer::kXavierNormal);
    layer.w = layout->Add(prefix + ".w", {width, rank}, Initializer::kXavierNormal);
    layer.bias = layout->Add(prefix + ".bias", {width}, Initializer::kZero);
    layers_.push_back(layer);
  }
}

LowRankCross::Workspace LowRankCross::MakeWorkspace(int64_t n, Precision precision) const {
  Workspace workspace;
  for (size_t l = 0; l < layers_.size(); ++l) {
    workspace.outputs.emplace_back(n, width_, precision);
    workspace.projected.emplace_back(n, rank_, precision);
    workspace.crossed.emplace_back(n, width_, precision);
  }
  workspace.d_crossed.Reshape(n, width_, precision);
  workspace.d_projected.Reshape(n, rank_, precision);
  return workspace;
}

const BlockedMatrix& LowRankCross::Forward(const PackedParameters& parameters,
                                           const BlockedMatrix& x0, Workspace* workspace) const {
  const TraceSpan span("cross network");
  const BlockedMatrix* x = &x0;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    BlockedMatrix& projected = workspace->projected[l];
    BlockedMatrix& crossed = workspace->crossed[l];
    Gemm(*x, parameters.weight(layer.v).transposed, {}, &projected);
    Gemm(projected, parameters.weight(layer.w).transposed, {.bias = parameters.vector(layer.bias)},
         &crossed);
    MultiplyAdd(x0, crossed, *x, &workspace->outputs[l]);
    x = &workspace->outputs[l];
  }
  return *x;
}

void LowRankCross::Backward(const PackedParameters& parameters, const BlockedMatrix& x0,
                            BlockedMatrix* dy, WeightGradients* gradients, BlockedMatrix* d_x0,
                            Workspace* workspace) const {
  const TraceSpan span("cross network");
  std::fill_n(d_x0->data(), d_x0->size(), 0.0f);
  BlockedMatrix& d_crossed = workspace->d_crossed;
  BlockedMatrix& d_projected = workspace->d_projected;
  for (size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const BlockedMatrix& x = l == 0 ? x0 : workspace->outputs[l - 1];
    MultiplyAdd(*dy, workspace->crossed[l], *d_x0, d_x0);
    Multiply(*dy, x0, &d_crossed);
    gradients->Add(d_crossed, workspace->projected[l], layer.w, layer.bias);
    Gemm(d_crossed, parameters.weight(layer.w).straight, {}, &d_projected);
    gradients->Add(d_projected, x, layer.v, std::nullopt);
    // d x_l = d x_{l+1} (through the residual) + d_projected · V
    Gemm(d_projected, parameters.weight(layer.v).straight, {.accumulate = true}, dy);
  }
  Add(*dy, d_x0);
}

}  // namespace renzan
