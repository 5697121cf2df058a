#pragma once

// What outputs learn by: binary cross-entropy with logits, or squared error.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace renzan {

enum class Loss {
  kBinaryCrossEntropy,  // the output is the logit of the probability that the label is 1
  kSquaredError,        // the output is the predicted label itself
};

// An output that learns from a label.
struct Task {
  size_t output = 0;        // of ModelOptions::outputs
  size_t label_column = 0;  // of Batch::label, in the training data
  double weight = 1;        // of its loss in the sum of all tasks' losses
  Loss loss = Loss::kBinaryCrossEntropy;
  bool operator==(const Task&) const = default;
};

// What a sample's loss is, with label y and weight w. By squared error it is w (x - y)^2, as
// PyTorch's MSELoss has it without weights. By binary cross-entropy it is w (pos_weight t
// log(1 + exp(-x)) + (1 - t) log(1 + exp(x))), with t = y (1 - label_smoothing) + label_smoothing /
// 2, as PyTorch's BCEWithLogitsLoss(weight=w, pos_weight=pos_weight) has it for the target t.
struct LossOptions {
  double pos_weight = 1;
  double label_smoothing = 0;   // in [0, 1)
  bool sample_weights = false;  // whether samples have weights other than 1
  std::vector<Task> tasks = {{}};

  bool is_plain() const { return pos_weight == 1 && label_smoothing == 0 && !sample_weights; }
  bool operator==(const LossOptions&) const = default;
};

// `gradient` = task_weight 2 w (x - y) / global_batch, and 0 where the label is NaN: of the mean of
// squared errors over the global batch, as below. `weights`: empty unless options.sample_weights.
void SquaredErrorGradient(const LossOptions& options, std::span<const float> predictions,
                          std::span<const float> labels, std::span<const float> weights,
                          int64_t global_batch, std::span<float> gradient, double task_weight = 1);

// The gradient of a task's mean loss over the global batch, which divides by the number of samples,
// not by the sum of their weights, nor by how many have the label: d_logits[i] = task_weight w
// ((pos_weight t + 1 - t) sigmoid(x) - pos_weight t) / global_batch, and 0 where the label is NaN.
// `weights`: empty unless options.sample_weights. OutputMetrics computes the plain losses itself.
void BinaryCrossEntropyGradient(const LossOptions& options, std::span<const float> logits,
                                std::span<const float> labels, std::span<const float> weights,
                                int64_t global_batch, std::span<float> d_logits,
                                double task_weight = 1);

float Sigmoid(float logit);

}  // namespace renzan
