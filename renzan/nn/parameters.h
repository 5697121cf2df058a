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
  kNormal,        // N(0, Parameter::variance)
  kZero,
  kOne,
  kQuarter,
};

struct Parameter {
  std::string name;  // "bottom.0.weight", PyTorch's orientation: [out, in]
  std::vector<int64_t> shape;
  int64_t offset = 0;  // into the flat array
  int64_t size = 0;
  Initializer initializer = Initializer::kZero;
  double variance = 0;          // for kNormal
  std::string block;            // of the model, that has it
  int64_t rows_per_sample = 1;  // of a weight's products: more where vectors of a sample share it
  // Of a running statistic, which no optimizer changes: see AddStatistic().
  double momentum = 0;
  int64_t statistic = -1;

  bool is_statistic() const { return statistic >= 0; }
};

// Where a running statistic is in the flat array, and where each virtual worker leaves what its
// samples give (WeightGradients::SetStatistic).
struct StatisticPlace {
  int64_t running = 0, observed = 0;
};

class ParameterLayout {
 public:
  // Appends a parameter and returns its offset. Offsets are aligned to 16 floats (a cache line);
  // the gaps stay zero.
  int64_t Add(std::string name, std::vector<int64_t> shape, Initializer initializer,
              int64_t rows_per_sample = 1);

  // The same, with initial values N(0, variance).
  int64_t AddNormal(std::string name, std::vector<int64_t> shape, double variance);

  // The products of weights that are added from now on have so many times the rows.
  void set_rows_factor(int64_t factor) { rows_factor_ = factor; }

  // Appends a vector that follows what the samples of training give: after each step, running = (1
  // - momentum) · running + momentum · the mean over all virtual workers of what each observed.
  StatisticPlace AddStatistic(std::string name, int64_t size, Initializer initializer,
                              double momentum);

  // Says that the parameters from `first` on are a block's.
  void SetBlock(size_t first, const std::string& block);

  int64_t size() const { return size_; }
  // Of what one virtual worker observes for all statistics.
  int64_t statistics_size() const { return statistics_size_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  // Initial values keyed by (seed, name, element): independent of everything else.
  void Initialize(uint64_t seed, std::span<float> values) const;

 private:
  std::vector<Parameter> parameters_;
  int64_t size_ = 0, statistics_size_ = 0, rows_factor_ = 1;
};

}  // namespace renzan
