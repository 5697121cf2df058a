#pragma once

// The dense parameters of a model as one flat array, so that gradients can be reduced and
// optimizers applied without knowing about layers. A layout is built once and never changes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace renzan {

enum class Initializer {
  kXavierNormal,  // N(0, 2 / (fan_in + fan_out)) for a weight [fan_out, fan_in]: DLRM's weights
  kBiasNormal,    // N(0, 1 / length): DLRM's biases
  kZero,
  kOne,
};

struct Parameter {
  std::string name;  // "bottom.0.weight", PyTorch's orientation: [out, in]
  std::vector<int64_t> shape;
  int64_t offset = 0;  // into the flat array
  int64_t size = 0;
  Initializer initializer = Initializer::kZero;
  int64_t rows_per_sample = 1;  // of a weight's products: more where vectors of a sample share it
};

class ParameterLayout {
 public:
  // Appends a parameter and returns its offset. Offsets are aligned to 16 floats (a cache line);
  // the gaps stay zero.
  int64_t Add(std::string name, std::vector<int64_t> shape, Initializer initializer,
              int64_t rows_per_sample = 1);

  int64_t size() const { return size_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  // Initial values keyed by (seed, name, element): independent of everything else.
  void Initialize(uint64_t seed, std::span<float> values) const;

 private:
  std::vector<Parameter> parameters_;
  int64_t size_ = 0;
};

}  // namespace renzan
