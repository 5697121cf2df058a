#include "renzan/checkpoint/model_diff.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

namespace renzan {
namespace {

// Returns how many values differ. `first` is the index of the first value of the pieces.
int64_t DiffPiece(const std::string& key, int64_t first, std::span<const float> a,
                  std::span<const float> b, ModelDiff& diff) {
  int64_t differing = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) continue;
    if (!diff.first) diff.first = {key, first + static_cast<int64_t>(i), a[i], b[i]};
    ++differing;
    const double distance = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    diff.max_abs_difference =
        std::max(diff.max_abs_difference,
                 std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
  }
  return differing;
}

void DiffTensor(const TensorInfo& tensor, CheckpointReader& a, CheckpointReader& b,
                ModelDiff& diff) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<float> x(kPiece), y(kPiece);
  const int64_t elements = NumElements(tensor.shape);
  int64_t differing = 0;
  for (int64_t first = 0; first < elements; first += kPiece) {
    const size_t size = static_cast<size_t>(std::min(kPiece, elements - first));
    x.resize(size);
    y.resize(size);
    a.Read(tensor.key, first, x);
    b.Read(tensor.key, first, y);
    differing += DiffPiece(tensor.key, first, x, y, diff);
  }
  ++diff.tensors;
  diff.values += elements;
  diff.values_differing += differing;
  diff.tensors_differing += differing > 0 ? 1 : 0;
}

}  // namespace

ModelDiff DiffModels(CheckpointReader& a, CheckpointReader& b) {
  a.VerifyAll();
  b.VerifyAll();
  ModelDiff diff;
  diff.step_a = a.step();
  diff.step_b = b.step();
  for (const std::string& key : b.keys())
    if (IsModelTensor(key) && !a.Contains(key)) diff.only_in_b.push_back(key);
  for (const std::string& key : a.keys()) {
    if (!IsModelTensor(key)) continue;
    if (!b.Contains(key)) {
      diff.only_in_a.push_back(key);
    } else if (a.Info(key).shape != b.Info(key).shape) {
      diff.other_shape.push_back(key);
    } else {
      DiffTensor(a.Info(key), a, b, diff);
    }
  }
  return diff;
}

}  // namespace renzan
