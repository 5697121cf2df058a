#pragma once

// Binary cross-entropy with logits.

#include <cstdint>
#include <span>

namespace renzan {

// mean over the global batch of max(x,0) - x·y + log(1 + exp(-|x|)): writes
// d_logits[i] = (sigmoid(x) - y) / global_batch and returns the sum of the losses of these samples,
// in sample order.
double BinaryCrossEntropy(std::span<const float> logits, std::span<const float> labels,
                          int64_t global_batch, std::span<float> d_logits);

float Sigmoid(float logit);

}  // namespace renzan
