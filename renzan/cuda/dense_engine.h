#pragma once

// The dense part of a model on the device: everything between the pooled rows and the logits, and
// back to their gradients, for all virtual workers of a process.

#include <memory>
#include <optional>
#include <span>

#include "renzan/cuda/dense_layers.h"
#include "renzan/cuda/dense_optimizer.cuh"
#include "renzan/cuda/device_model.h"

namespace renzan::cuda {

class DenseEngine {
 public:
  DenseEngine(const DeviceModelOptions& options, const Stream& stream);

  const Model& model() const { return *model_; }

  // [own samples, features per sample] in the products' precision. The engine writes vector 0; the
  // caller writes the pooled rows, from column `embedding_dim` on.
  void* features() const { return features_.as<void>(); }
  const void* d_features() const { return d_features_.as<void>(); }

  float* parameters() const { return parameters_.as<float>(); }  // flat
  float* state(size_t index) const { return states_[index].as<float>(); }

  // All of these only launch. `dense` [own samples, num_dense] and `labels` are in device memory.
  void PackWeights() const;
  // The forward pass: of the dense features, then of all features. `step`: the training step, in
  // device memory, for dropout; null in evaluation.
  void ForwardDense(const float* dense, const int64_t* step) const;
  void ForwardFeatures(const int64_t* step) const;
  // The logits, after the forward pass.
  const float* logits() const { return logits_.as<float>(); }
  void CopyLogits() const;
  // The backward pass: to d_features, then to the dense features. The gradients are complete after
  // both.
  void BackwardToFeatures(const float* labels, int64_t global_batch) const;
  void BackwardToDense() const;
  // The sum of the gradients of own virtual workers [first, first + n) by the tree, as a flat
  // array; n is a power of two.
  void SumGradients(int first, int n, float* flat) const;
  // For a process with all virtual workers: reduces their gradients and applies the optimizer.
  // `step` is in device memory. For *finite see ApplyDenseOptimizer.
  void Update(const DenseStep* step, int32_t* finite) const;

 private:
  const Stream& stream_;
  DeviceModelOptions options_;
  std::unique_ptr<Model> model_;
  ParameterPlaces places_;
  Stream beside_;  // see DenseContext
  Event fork_, join_;
  ProductLibrary products_, products_beside_;
  DeviceMemory device_places_, logit_place_;
  DeviceMemory parameters_, weights_, last_bias_, gradients_, sum_;
  std::optional<ColumnSums> column_sums_;
  std::vector<DeviceMemory> states_;
  DenseContext context_;
  int64_t dense_stride_ = 0, features_stride_ = 0;

  DeviceMemory dense_, features_, d_features_, d_bottom_, d_output_, logits_;
  std::optional<DeviceMlp> bottom_, top_;
  std::optional<DeviceCross> cross_;
  // In DLRM, the dot interaction's output and its gradient; in DCN v2, the cross network's.
  DeviceMemory interactions_, d_interactions_;
};

}  // namespace renzan::cuda
