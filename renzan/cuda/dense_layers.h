#pragma once

// The layers of the dense part on the device, for all virtual workers of a process: MLPs and the
// low-rank cross network (for the mathematics see renzan/model/blocks/mlp.h, cross.h).
// Widths are padded to multiples of 8 with zeros, which stay zero.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/products.h"
#include "renzan/nn/dropout.h"
#include "renzan/nn/parameters.h"

namespace renzan::cuda {

constexpr int64_t Padded(int64_t columns) { return (columns + 7) / 8 * 8; }

inline int64_t BytesPerValue(Precision precision) {
  return precision == Precision::kBFloat16 ? 2 : 4;
}

// Where the parameters are on the device: places() in one array of `size()` values. The weights in
// the products' precision, and each virtual worker's gradients in float32, have the same places.
class ParameterPlaces {
 public:
  explicit ParameterPlaces(const ParameterLayout& layout);

  const std::vector<ParameterPlace>& places() const { return places_; }
  const ParameterPlace& of(const std::string& name) const;
  int64_t size() const { return size_; }
  int64_t largest() const { return largest_; }  // values of a parameter

 private:
  const ParameterLayout& layout_;
  std::vector<ParameterPlace> places_;
  int64_t size_ = 0, largest_ = 0;
};

// What the layers share. Gradients of weights are computed beside everything else, because nothing
// needs them before the optimizer.
struct DenseContext {
  const ProductLibrary *products = nullptr, *products_beside = nullptr;
  const ParameterPlaces* places = nullptr;
  Precision precision = Precision::kFloat32;
  int batches = 1;           // virtual workers of this process
  int64_t rows = 0;          // samples of each virtual worker
  int64_t first_sample = 0;  // of the first virtual worker, within the global batch
  DropoutOptions dropout;
  std::byte* weights = nullptr;      // places->size() values
  float* gradients = nullptr;        // [batches, places->size()]
  const float* last_bias = nullptr;  // the logit's, in float32 [8]
  const ColumnSums* column_sums = nullptr;
  const Stream *stream = nullptr, *beside = nullptr;
  const Event* fork = nullptr;

  int64_t all_rows() const { return batches * rows; }
  MatrixShape Shape(int64_t columns) const {
    return {.batches = batches, .rows = rows, .columns = columns, .precision = precision};
  }
  void* weight(const ParameterPlace& place) const {
    return weights + place.padded_offset * BytesPerValue(precision);
  }
  float* gradient(const ParameterPlace& place) const { return gradients + place.padded_offset; }
  DeviceMemory Matrix(int64_t columns, bool as_float = false) const {
    return DeviceMemory(
        static_cast<size_t>(all_rows() * columns * (as_float ? 4 : BytesPerValue(precision))));
  }
};

// y = x · Wᵀ + b, and ReLU.
class LinearLayer {
 public:
  enum class Output { kRelu, kLinear, kLogit };  // a logit is float32
  // `weight`: "top.0.weight"; `bias`: its name, or "".
  LinearLayer(const DenseContext& context, const std::string& weight, const std::string& bias,
              Output output, bool accumulates_input_gradient = false);
  int64_t in() const { return weight_.stride; }
  int64_t units() const { return weight_.rows; }
  int64_t out() const { return Padded(units()); }
  void Forward(const DenseContext& context, const void* x, void* y) const;
  // dy -> the gradient of the bias. If y has a ReLU, dy is first passed through it, in place, and
  // multiplied by `scale`.
  void BiasGradient(const DenseContext& context, const void* y, float scale, void* dy) const;
  // That dy -> the gradient of the weight, computed beside the rest: x and dy must stay unchanged.
  void WeightGradient(const DenseContext& context, const void* x, const void* dy) const;
  // That dy -> dx, written or added.
  void InputGradient(const DenseContext& context, const void* dy, void* dx) const;

 private:
  ParameterPlace weight_;
  std::optional<ParameterPlace> bias_;
  Output output_;
  std::optional<Product> forward_, weight_gradient_, input_gradient_;
};

class DeviceMlp {
 public:
  // `name`: "bottom" or "top", of `layers` layers. The last layer of the top one is the logit.
  DeviceMlp(const DenseContext& context, const std::string& name, size_t layers,
            bool ends_in_logit);

  int64_t in() const { return layers_.front().in(); }
  // [all rows, padded width]
  void* output() const { return activations_.back().as<void>(); }
  // `step`: of training, in device memory, for dropout; null in evaluation.
  void Forward(const DenseContext& context, const void* x, const int64_t* step) const;
  // dy [all rows, padded width] is overwritten, and must stay until context.beside is done. `dx`:
  // null if not needed.
  void Backward(const DenseContext& context, const void* x, void* dy, void* dx) const;

 private:
  std::vector<LinearLayer> layers_;
  std::vector<std::optional<Dropout>> dropouts_;  // after each layer
  std::vector<DeviceMemory> activations_;
  std::vector<DeviceMemory> d_hidden_;  // the gradient of layer i + 1's input
};

class DeviceCross {
 public:
  DeviceCross(const DenseContext& context, int layers, int64_t width);

  void* output() const { return outputs_.back().as<void>(); }
  void Forward(const DenseContext& context, const void* x0) const;
  // dy [all rows, width] is overwritten; x0 must stay until context.beside is done.
  void Backward(const DenseContext& context, const void* x0, void* dy, void* d_x0) const;

 private:
  struct Layer {
    LinearLayer v, w;
    ParameterPlace bias;
  };
  int64_t width_;
  std::vector<Layer> layers_;
  std::vector<DeviceMemory> projected_, crossed_, outputs_, d_crossed_, d_projected_;
};

}  // namespace renzan::cuda
