#pragma once

// A stack of fully connected layers with ReLU, for the fixed number of samples of a virtual worker.
// The caller owns parameters, gradients and activations: an Mlp only holds sizes and offsets, and
// its functions are thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/aligned_buffer.h"
#include "renzan/nn/dropout.h"
#include "renzan/nn/parameters.h"

namespace renzan {

class Mlp {
 public:
  enum class LastLayer { kRelu, kLinear };

  // sizes = {in, hidden..., out}. Registers "<name>.<i>.weight" [out, in] and "<name>.<i>.bias".
  // Dropout follows every hidden layer, with the key "<name>.<i>".
  Mlp(const std::string& name, std::vector<int64_t> sizes, LastLayer last, ParameterLayout* layout,
      const DropoutOptions& dropout = {});

  int64_t in() const { return sizes_.front(); }
  int64_t out() const { return sizes_.back(); }

  // Activations of every layer but the last, and two scratch gradients, for n samples.
  struct Workspace {
    std::vector<AlignedBuffer> activations;    // layer i's output [n, sizes[i + 1]]
    AlignedBuffer gradient_a, gradient_b;      // [n, max size]
    std::optional<TrainingPosition> training;  // unset: no dropout
  };
  Workspace MakeWorkspace(int64_t n) const;

  // x [n, in] with rows `x_stride` apart -> y [n, out] with rows `y_stride` apart.
  void Forward(const float* parameters, int64_t n, const float* x, int64_t x_stride, float* y,
               int64_t y_stride, Workspace* workspace) const;

  // From dy (destroyed) and Forward's x and y: writes (does not add to) the layers' gradients, and
  // dx unless it is null.
  void Backward(const float* parameters, int64_t n, const float* x, int64_t x_stride,
                const float* y, int64_t y_stride, float* dy, int64_t dy_stride, float* gradients,
                float* dx, int64_t dx_stride, Workspace* workspace) const;

 private:
  struct Layer {
    int64_t in, out, weight, bias;  // weight and bias: offsets into the flat parameters
    bool relu;
    std::optional<Dropout> dropout;  // of its output
  };
  std::vector<int64_t> sizes_;
  std::vector<Layer> layers_;
};

}  // namespace renzan
