#include "renzan/model/low_rank_cross.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/matmul.h"

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

LowRankCross::Workspace LowRankCross::MakeWorkspace(int64_t n) const {
  const size_t wide = static_cast<size_t>(n * width_), narrow = static_cast<size_t>(n * rank_);
  Workspace workspace;
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (l > 0) workspace.inputs.emplace_back(wide);
    workspace.projected.emplace_back(narrow);
    workspace.crossed.emplace_back(wide);
  }
  workspace.d_x = AlignedBuffer(wide);
  workspace.d_crossed = AlignedBuffer(wide);
  workspace.d_projected = AlignedBuffer(narrow);
  return workspace;
}

void LowRankCross::Forward(const float* parameters, int64_t n, const float* x0, float* y,
                           Workspace* workspace) const {
  const int64_t size = n * width_;
  const float* x = x0;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    float* projected = workspace->projected[l].data();
    float* crossed = workspace->crossed[l].data();
    Matmul(Transpose::kNo, Transpose::kYes, n, rank_, width_, x, width_, parameters + layer.v,
           width_, 0.0f, projected, rank_);
    Matmul(Transpose::kNo, Transpose::kYes, n, width_, rank_, projected, rank_,
           parameters + layer.w, rank_, 0.0f, crossed, width_);
    AddBias(crossed, n, width_, width_, parameters + layer.bias);
    float* next = l + 1 == layers_.size() ? y : workspace->inputs[l].data();
    Multiply(x0, crossed, next, size);
    Add(x, next, size);
    x = next;
  }
  if (layers_.empty()) std::copy_n(x0, size, y);
}

void LowRankCross::Backward(const float* parameters, int64_t n, const float* x0, float* dy,
                            float* gradients, float* d_x0, Workspace* workspace) const {
  const int64_t size = n * width_;
  std::fill_n(d_x0, size, 0.0f);
  float* d_crossed = workspace->d_crossed.data();
  float* d_projected = workspace->d_projected.data();
  for (size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* x = l == 0 ? x0 : workspace->inputs[l - 1].data();
    MultiplyAdd(dy, workspace->crossed[l].data(), d_x0, size);
    Multiply(dy, x0, d_crossed, size);
    SumRows(d_crossed, n, width_, width_, gradients + layer.bias);
    Matmul(Transpose::kYes, Transpose::kNo, width_, rank_, n, d_crossed, width_,
           workspace->projected[l].data(), rank_, 0.0f, gradients + layer.w, rank_);
    Matmul(Transpose::kNo, Transpose::kNo, n, rank_, width_, d_crossed, width_,
           parameters + layer.w, rank_, 0.0f, d_projected, rank_);
    Matmul(Transpose::kYes, Transpose::kNo, rank_, width_, n, d_projected, rank_, x, width_, 0.0f,
           gradients + layer.v, width_);
    // d x_l = d x_{l+1} (through the residual) + Vᵀ d_projected
    Matmul(Transpose::kNo, Transpose::kNo, n, width_, rank_, d_projected, rank_,
           parameters + layer.v, width_, 0.0f, workspace->d_x.data(), width_);
    Add(workspace->d_x.data(), dy, size);
  }
  Add(dy, d_x0, size);
}

}  // namespace renzan
