#include "renzan/model/loss.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"

namespace renzan {

float Sigmoid(float logit) {
  const float e = std::exp(-std::abs(logit));
  return (logit >= 0 ? 1.0f : e) / (1.0f + e);
}

double BinaryCrossEntropy(std::span<const float> logits, std::span<const float> labels,
                          int64_t global_batch, std::span<float> d_logits) {
  CHECK(logits.size() == labels.size() && logits.size() == d_logits.size());
  const float scale = 1.0f / static_cast<float>(global_batch);
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i], y = labels[i];
    d_logits[i] = (Sigmoid(x) - y) * scale;
    sum += static_cast<double>(std::max(x, 0.0f) - x * y + std::log1p(std::exp(-std::abs(x))));
  }
  return sum;
}

}  // namespace renzan
