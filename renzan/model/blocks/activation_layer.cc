#include "renzan/model/blocks/activation_layer.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/model/blocks/batch_norm.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

class Function final : public ActivationLayer {
 public:
  explicit Function(const std::string& name) : function_(ActivationNamed(name)) {}
  void Forward(const BlockPass&, const BlockedMatrix& z, BlockedMatrix* y) const override {
    Activate(function_, z, y);
  }
  void Backward(const BlockPass&, const BlockedMatrix& z, BlockedMatrix* d,
                WeightGradients*) const override {
    ActivateBackward(function_, z, d);
  }

 private:
  Activation function_;
};

class PreluLayer final : public ActivationLayer {
 public:
  PreluLayer(const BlockPlace& place, const std::string& prefix, int64_t columns)
      : slope_(place.parameters.Add(prefix + ".slope", {columns}, Initializer::kQuarter)),
        d_slope_(place.buffers.Add(columns, Precision::kFloat32)) {}

  void Forward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* y) const override {
    Prelu(z, pass.parameters.vector(slope_), y);
  }

  void Backward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* d,
                WeightGradients* gradients) const override {
    BlockedMatrix& d_slopes = pass.buffers[d_slope_];
    PreluBackward(z, pass.parameters.vector(slope_), d, &d_slopes);
    gradients->AddVector(d_slopes, slope_);
  }

 private:
  int64_t slope_;   // offset of the parameter
  size_t d_slope_;  // buffer of each sample's part
};

class DiceLayer final : public ActivationLayer {
 public:
  DiceLayer(const BlockPlace& place, const std::string& prefix, int64_t columns)
      : columns_(columns),
        slope_(place.parameters.Add(prefix + ".slope", {columns}, Initializer::kZero)),
        normalization_({.epsilon = 1e-9, .momentum = 0.01, .affine = false}, place, prefix,
                       columns),
        normalized_(place.buffers.Add(columns, Precision::kFloat32)),
        d_normalized_(place.buffers.Add(columns, Precision::kFloat32)),
        d_slope_(place.buffers.Add(columns, Precision::kFloat32)),
        row_(place.buffers.AddRow(2 * columns)) {}

  void Forward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* y) const override {
    BlockedMatrix& normalized = pass.buffers[normalized_];
    normalization_.Forward(pass, z, &normalized);
    Dice(z, normalized, pass.parameters.vector(slope_), y);
  }

  void Backward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* d,
                WeightGradients* gradients) const override {
    BlockedMatrix &d_normalized = pass.buffers[d_normalized_], &d_slopes = pass.buffers[d_slope_];
    DiceBackward(z, pass.buffers[normalized_], pass.parameters.vector(slope_), d, &d_normalized,
                 &d_slopes);
    gradients->AddVector(d_slopes, slope_);
    normalization_.Backward(pass, z, d_normalized, gradients, &d_normalized);
    float *const dz = pass.rows[row_].data(), *const through = dz + columns_;
    for (int64_t i = 0; i < z.rows(); ++i) {
      d->GetRow(i, 0, dz, columns_);
      d_normalized.GetRow(i, 0, through, columns_);
      for (int64_t c = 0; c < columns_; ++c) dz[c] += through[c];
      d->SetRow(i, 0, dz, columns_);
    }
  }

 private:
  int64_t columns_, slope_;  // slope_: offset of the parameter
  BatchNormalization normalization_;
  size_t normalized_, d_normalized_, d_slope_;  // buffers
  size_t row_;                                  // of a sample: both parts of the gradient
};

}  // namespace

const std::vector<std::string>& ActivationLayerNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = ActivationNames();
    all.insert(all.end(), {"prelu", "dice"});
    return all;
  }();
  return names;
}

std::unique_ptr<ActivationLayer> MakeActivationLayer(const std::string& name,
                                                     const BlockPlace& place,
                                                     const std::string& prefix, int64_t columns) {
  if (name == "prelu") return std::make_unique<PreluLayer>(place, prefix, columns);
  if (name == "dice") return std::make_unique<DiceLayer>(place, prefix, columns);
  return std::make_unique<Function>(name);
}

}  // namespace renzan
