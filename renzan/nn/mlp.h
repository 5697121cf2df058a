#pragma once

// A stack of fully connected layers with ReLU, for a virtual worker's fixed number of samples. The
// caller owns parameters, gradients and activations: an Mlp only holds sizes and offsets, and its
// functions are thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/nn/dropout.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/nn/weight_gradients.h"
#include "renzan/tensor/blocked_matrix.h"

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

  // Buffers for n samples.
  struct Workspace {
    std::vector<BlockedMatrix> activations;    // layer i's output, [n, sizes[i + 1]]
    BlockedMatrix gradients[2];                // of the activations, alternating
    std::optional<TrainingPosition> training;  // unset: no dropout

    const BlockedMatrix& output() const { return activations.back(); }
  };
  // Activations and gradients have the given precision, but the output of a linear last layer is
  // always float32.
  Workspace MakeWorkspace(int64_t n, Precision precision = Precision::kFloat32) const;

  // x [n, in] -> workspace->output() [n, out]. x, dy, dx and the parameters have the same
  // precision.
  void Forward(const PackedParameters& parameters, const BlockedMatrix& x,
               Workspace* workspace) const;

  // After Forward of x: from dy [n, out] (destroyed), adds the layers' gradients and writes dx [n,
  // in] unless it is null.
  void Backward(const PackedParameters& parameters, const BlockedMatrix& x, BlockedMatrix* dy,
                WeightGradients* gradients, BlockedMatrix* dx, Workspace* workspace) const;

 private:
  struct Layer {
    std::string name;               // "top.0"
    int64_t in, out, weight, bias;  // weight and bias: offsets into the flat parameters
    bool relu;
    std::optional<Dropout> dropout;  // after its output
  };
  std::vector<int64_t> sizes_;
  LastLayer last_;
  std::vector<Layer> layers_;
};

}  // namespace renzan
