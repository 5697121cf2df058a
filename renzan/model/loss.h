#pragma once

// Binary cross-entropy with logits.

#include <cstdint>
#include <span>

namespace renzan {

// The gradient of the mean loss over the global batch, max(x,0) - x·y + log(1 + exp(-|x|)) for each
// sample: d_logits[i] = (sigmoid(x) - y) / global_batch. BinaryMetrics computes the loss itself.
void BinaryCrossEntropyGradient(std::span<const float> logits, std::span<const float> labels,
                                int64_t global_batch, std::span<float> d_logits);

float Sigmoid(float logit);

}  // namespace renzan
