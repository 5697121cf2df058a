#include "renzan/model/loss.h"

#include <cmath>

#include "renzan/base/error.h"

namespace renzan {

float Sigmoid(float logit) {
  const float e = std::exp(-std::abs(logit));
  return (logit >= 0 ? 1.0f : e) / (1.0f + e);
}

void SquaredErrorGradient(const LossOptions& options, std::span<const float> predictions,
                          std::span<const float> labels, std::span<const float> weights,
                          int64_t global_batch, std::span<float> gradient, double task_weight) {
  CHECK(predictions.size() == labels.size() && predictions.size() == gradient.size());
  CHECK(weights.size() == (options.sample_weights ? predictions.size() : 0));
  const float scale = static_cast<float>(2 * task_weight) / static_cast<float>(global_batch);
  for (size_t i = 0; i < predictions.size(); ++i)
    gradient[i] = (predictions[i] - labels[i]) * scale;
  for (size_t i = 0; i < weights.size(); ++i) gradient[i] *= weights[i];
  for (size_t i = 0; i < labels.size(); ++i)
    if (std::isnan(labels[i])) gradient[i] = 0;
}

void BinaryCrossEntropyGradient(const LossOptions& options, std::span<const float> logits,
                                std::span<const float> labels, std::span<const float> weights,
                                int64_t global_batch, std::span<float> d_logits,
                                double task_weight) {
  CHECK(logits.size() == labels.size() && logits.size() == d_logits.size());
  CHECK(weights.size() == (options.sample_weights ? logits.size() : 0));
  const float scale = static_cast<float>(task_weight) / static_cast<float>(global_batch);
  const float pos_weight = static_cast<float>(options.pos_weight);
  const float kept = static_cast<float>(1 - options.label_smoothing);
  const float added = static_cast<float>(options.label_smoothing / 2);
  for (size_t i = 0; i < logits.size(); ++i) {
    const float target = kept * labels[i] + added;
    const float positive = pos_weight * target;
    // Of the plain loss the slope is exactly 1, and `positive` the label.
    const float slope = positive + (1 - target);
    d_logits[i] = (slope * Sigmoid(logits[i]) - positive) * scale;
  }
  for (size_t i = 0; i < weights.size(); ++i) d_logits[i] *= weights[i];
  for (size_t i = 0; i < labels.size(); ++i)
    if (std::isnan(labels[i])) d_logits[i] = 0;
}

}  // namespace renzan
