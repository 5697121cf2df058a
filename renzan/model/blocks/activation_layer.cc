#include "renzan/model/blocks/activation_layer.h"

#include <algorithm>
#include <cmath>

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

class Prelu final : public ActivationLayer {
 public:
  Prelu(const BlockPlace& place, const std::string& prefix, int64_t columns)
      : columns_(columns),
        slope_(place.parameters.Add(prefix + ".slope", {columns}, Initializer::kQuarter)),
        d_slope_(place.buffers.Add(columns, Precision::kFloat32)),
        row_(place.buffers.AddRow(2 * columns)) {}

  void Forward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* y) const override {
    const float* const slope = pass.parameters.vector(slope_);
    float* const row = pass.rows[row_].data();
    for (int64_t i = 0; i < z.rows(); ++i) {
      z.GetRow(i, 0, row, columns_);
      for (int64_t c = 0; c < columns_; ++c) row[c] = row[c] > 0 ? row[c] : slope[c] * row[c];
      y->SetRow(i, 0, row, columns_);
    }
  }

  void Backward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* d,
                WeightGradients* gradients) const override {
    const float* const slope = pass.parameters.vector(slope_);
    BlockedMatrix& d_slopes = pass.buffers[d_slope_];
    float *const row = pass.rows[row_].data(), *const dy = row + columns_;
    for (int64_t i = 0; i < z.rows(); ++i) {
      z.GetRow(i, 0, row, columns_);
      d->GetRow(i, 0, dy, columns_);
      for (int64_t c = 0; c < columns_; ++c) {
        const bool passes = row[c] > 0;
        row[c] = passes ? 0.0f : row[c] * dy[c];
        dy[c] = passes ? dy[c] : slope[c] * dy[c];
      }
      d_slopes.SetRow(i, 0, row, columns_);
      d->SetRow(i, 0, dy, columns_);
    }
    gradients->AddVector(d_slopes, slope_);
  }

 private:
  int64_t columns_, slope_;  // slope_: offset of the parameter
  size_t d_slope_, row_;     // buffer of each sample's part; of a sample: z and dy
};

class Dice final : public ActivationLayer {
 public:
  Dice(const BlockPlace& place, const std::string& prefix, int64_t columns)
      : columns_(columns),
        slope_(place.parameters.Add(prefix + ".slope", {columns}, Initializer::kZero)),
        normalization_({.epsilon = 1e-9, .momentum = 0.01, .affine = false}, place, prefix,
                       columns),
        normalized_(place.buffers.Add(columns, Precision::kFloat32)),
        d_normalized_(place.buffers.Add(columns, Precision::kFloat32)),
        d_slope_(place.buffers.Add(columns, Precision::kFloat32)),
        row_(place.buffers.AddRow(3 * columns)) {}

  void Forward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* y) const override {
    const float* const slope = pass.parameters.vector(slope_);
    BlockedMatrix& normalized = pass.buffers[normalized_];
    normalization_.Forward(pass, z, &normalized);
    float *const row = pass.rows[row_].data(), *const p = row + columns_;
    for (int64_t i = 0; i < z.rows(); ++i) {
      z.GetRow(i, 0, row, columns_);
      normalized.GetRow(i, 0, p, columns_);
      for (int64_t c = 0; c < columns_; ++c) {
        const float share = Sigmoid(p[c]);
        row[c] *= share + slope[c] * (1 - share);
      }
      y->SetRow(i, 0, row, columns_);
    }
  }

  // dy/dz = p + slope (1 − p), and through p: z (1 − slope) p (1 − p) times the normalized value's.
  void Backward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* d,
                WeightGradients* gradients) const override {
    const float* const slope = pass.parameters.vector(slope_);
    const BlockedMatrix& normalized = pass.buffers[normalized_];
    BlockedMatrix &d_normalized = pass.buffers[d_normalized_], &d_slopes = pass.buffers[d_slope_];
    float *const row = pass.rows[row_].data(), *const dy = row + columns_, *const p = dy + columns_;
    for (int64_t i = 0; i < z.rows(); ++i) {
      z.GetRow(i, 0, row, columns_);
      d->GetRow(i, 0, dy, columns_);
      normalized.GetRow(i, 0, p, columns_);
      for (int64_t c = 0; c < columns_; ++c) {
        const float share = Sigmoid(p[c]), product = dy[c] * row[c];
        dy[c] *= share + slope[c] * (1 - share);
        p[c] = product * ((1 - slope[c]) * (share * (1 - share)));
        row[c] = product * (1 - share);
      }
      d->SetRow(i, 0, dy, columns_);
      d_normalized.SetRow(i, 0, p, columns_);
      d_slopes.SetRow(i, 0, row, columns_);
    }
    gradients->AddVector(d_slopes, slope_);
    normalization_.Backward(pass, z, d_normalized, gradients, &d_normalized);
    for (int64_t i = 0; i < z.rows(); ++i) {
      d->GetRow(i, 0, dy, columns_);
      d_normalized.GetRow(i, 0, p, columns_);
      for (int64_t c = 0; c < columns_; ++c) dy[c] += p[c];
      d->SetRow(i, 0, dy, columns_);
    }
  }

 private:
  static float Sigmoid(float x) { return static_cast<float>(1 / (1 + std::exp(-double{x}))); }

  int64_t columns_, slope_;  // slope_: offset of the parameter
  BatchNormalization normalization_;
  size_t normalized_, d_normalized_, d_slope_;  // buffers
  size_t row_;                                  // of a sample: z, and its gradient and p
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
  if (name == "prelu") return std::make_unique<Prelu>(place, prefix, columns);
  if (name == "dice") return std::make_unique<Dice>(place, prefix, columns);
  return std::make_unique<Function>(name);
}

}  // namespace renzan
