#pragma once

// Binary cross-entropy with logits.

#include <cstdint>
#include <span>

namespace renzan {

// What a sample's loss is. With label y, t = y (1 - label_smoothing) + label_smoothing / 2 and its
// weight w, it is w (pos_weight t log(1 + exp(-x)) + (1 - t) log(1 + exp(x))), as PyTorch's
// BCEWithLogitsLoss(weight=w, pos_weight=pos_weight) has it for the target t.
struct LossOptions {
  double pos_weight = 1;
  double label_smoothing = 0;   // in [0, 1)
  bool sample_weights = false;  // whether samples have weights other than 1

  bool is_plain() const { return pos_weight == 1 && label_smoothing == 0 && !sample_weights; }
  bool operator==(const LossOptions&) const = default;
};

// The gradient of the mean loss over the global batch, which divides by the number of samples, not
// by the sum of their weights: d_logits[i] = w ((pos_weight t + 1 - t) sigmoid(x) - pos_weight t) /
// global_batch. `weights`: empty unless options.sample_weights. BinaryMetrics computes the plain
// loss itself.
void BinaryCrossEntropyGradient(const LossOptions& options, std::span<const float> logits,
                                std::span<const float> labels, std::span<const float> weights,
                                int64_t global_batch, std::span<float> d_logits);

float Sigmoid(float logit);

}  // namespace renzan
