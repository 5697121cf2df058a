#pragma once

// Binary cross-entropy with logits.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace renzan {

// An output that learns from a label.
struct Task {
  size_t output = 0;        // of ModelOptions::outputs
  size_t label_column = 0;  // of Batch::label, in the training data
  double weight = 1;        // of its loss in the sum of all tasks' losses
  bool operator==(const Task&) const = default;
};

// What a sample's loss is. With label y, t = y (1 - label_smoothing) + label_smoothing / 2 and its
// weight w, it is w (pos_weight t log(1 + exp(-x)) + (1 - t) log(1 + exp(x))), as PyTorch's
// BCEWithLogitsLoss(weight=w, pos_weight=pos_weight) has it for the target t.
struct LossOptions {
  double pos_weight = 1;
  double label_smoothing = 0;   // in [0, 1)
  bool sample_weights = false;  // whether samples have weights other than 1
  std::vector<Task> tasks = {{}};

  bool is_plain() const { return pos_weight == 1 && label_smoothing == 0 && !sample_weights; }
  bool operator==(const LossOptions&) const = default;
};

// The gradient of a task's mean loss over the global batch, which divides by the number of samples,
// not by the sum of their weights, nor by how many have the label: d_logits[i] = task_weight w
// ((pos_weight t + 1 - t) sigmoid(x) - pos_weight t) / global_batch, and 0 where the label is NaN.
// `weights`: empty unless options.sample_weights. BinaryMetrics computes the plain loss itself.
void BinaryCrossEntropyGradient(const LossOptions& options, std::span<const float> logits,
                                std::span<const float> labels, std::span<const float> weights,
                                int64_t global_batch, std::span<float> d_logits,
                                double task_weight = 1);

float Sigmoid(float logit);

}  // namespace renzan
