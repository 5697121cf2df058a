#include "renzan/nn/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "renzan/base/error.h"
#include "renzan/nn/elementwise.h"

namespace renzan {
namespace {

double Sigmoid(double z) {
  const double e = std::exp(-std::abs(z));
  return (z < 0 ? e : 1) / (1 + e);
}

double NormalShare(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

double Value(Activation activation, double z) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(z, 0.0);
    case Activation::kSilu:
      return z * Sigmoid(z);
    case Activation::kGelu:
      return z * NormalShare(z);
    case Activation::kTanh:
      return std::tanh(z);
    case Activation::kSigmoid:
      return Sigmoid(z);
  }
  return 0;
}

double Slope(Activation activation, double z) {
  switch (activation) {
    case Activation::kRelu:
      return z > 0 ? 1 : 0;
    case Activation::kSilu: {
      const double s = Sigmoid(z);
      return s * (1 + z * (1 - s));
    }
    case Activation::kGelu: {
      constexpr double kDensityAt0 = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
      return NormalShare(z) + z * kDensityAt0 * std::exp(-z * z / 2);
    }
    case Activation::kTanh: {
      const double t = std::tanh(z);
      return 1 - t * t;
    }
    case Activation::kSigmoid: {
      const double s = Sigmoid(z);
      return s * (1 - s);
    }
  }
  return 0;
}

// y = result(z, y), value by value.
template <typename Result>
void ForEachValue(const BlockedMatrix& z, BlockedMatrix* y, const Result& result) {
  constexpr int64_t kPart = 2 * BlockedMatrix::kLanes;
  float from[kPart], to[kPart];
  for (int64_t first = 0; first < z.columns(); first += kPart) {
    const int64_t count = std::min(kPart, z.columns() - first);
    for (int64_t row = 0; row < z.rows(); ++row) {
      z.GetRow(row, first, from, count);
      y->GetRow(row, first, to, count);
      for (int64_t i = 0; i < count; ++i) to[i] = result(from[i], to[i]);
      y->SetRow(row, first, to, count);
    }
  }
}

}  // namespace

const std::vector<std::string>& ActivationNames() {
  static const std::vector<std::string> names = {"relu", "silu", "gelu", "tanh", "sigmoid"};
  return names;
}

Activation ActivationNamed(const std::string& name) {
  const auto at = std::find(ActivationNames().begin(), ActivationNames().end(), name);
  CHECK(at != ActivationNames().end());
  return static_cast<Activation>(at - ActivationNames().begin());
}

void Activate(Activation activation, const BlockedMatrix& z, BlockedMatrix* y) {
  if (activation == Activation::kRelu) return Relu(z, y);
  ForEachValue(
      z, y, [&](float from, float) { return static_cast<float>(Value(activation, double{from})); });
}

void ActivateBackward(Activation activation, const BlockedMatrix& z, BlockedMatrix* d) {
  if (activation == Activation::kRelu) return ReluBackward(z, d);
  ForEachValue(z, d, [&](float from, float gradient) {
    return gradient * static_cast<float>(Slope(activation, double{from}));
  });
}

}  // namespace renzan
