#include "renzan/checkpoint/model_diff.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace renzan {
namespace {

void DiffTensor(const NamedTensor& a, const NamedTensor& b, ModelDiff& diff) {
  bool differs = false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (std::bit_cast<uint32_t>(a.values[i]) == std::bit_cast<uint32_t>(b.values[i])) continue;
    if (!diff.first) diff.first = {a.key, static_cast<int64_t>(i), a.values[i], b.values[i]};
    differs = true;
    ++diff.values_differing;
    const double distance =
        std::abs(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i]));
    diff.max_abs_difference =
        std::max(diff.max_abs_difference,
                 std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
  }
  diff.tensors_differing += differs ? 1 : 0;
}

}  // namespace

ModelDiff DiffModels(ModelReader& a, ModelReader& b) {
  a.VerifyAll();
  b.VerifyAll();
  ModelDiff diff;
  diff.step_a = a.step();
  diff.step_b = b.step();
  for (const std::string& key : b.keys())
    if (!a.Contains(key)) diff.only_in_b.push_back(key);
  for (const std::string& key : a.keys()) {
    if (!b.Contains(key)) {
      diff.only_in_a.push_back(key);
      continue;
    }
    const NamedTensor x = a.Tensor(key), y = b.Tensor(key);
    if (x.shape != y.shape) {
      diff.other_shape.push_back(key);
      continue;
    }
    ++diff.tensors;
    diff.values += static_cast<int64_t>(x.values.size());
    DiffTensor(x, y, diff);
  }
  return diff;
}

}  // namespace renzan
