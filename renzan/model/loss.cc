#include "renzan/model/loss.h"

#include <cmath>

#include "renzan/base/error.h"

namespace renzan {

float Sigmoid(float logit) {
  const float e = std::exp(-std::abs(logit));
  return (logit >= 0 ? 1.0f : e) / (1.0f + e);
}

void BinaryCrossEntropyGradient(std::span<const float> logits, std::span<const float> labels,
                                int64_t global_batch, std::span<float> d_logits) {
  CHECK(logits.size() == labels.size() && logits.size() == d_logits.size());
  const float scale = 1.0f / static_cast<float>(global_batch);
  for (size_t i = 0; i < logits.size(); ++i) d_logits[i] = (Sigmoid(logits[i]) - labels[i]) * scale;
}

}  // namespace renzan
