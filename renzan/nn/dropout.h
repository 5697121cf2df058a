#pragma once

// Inverted dropout (Srivastava et al., 2014) after the activations of one layer: in training, an
// activation becomes 0 with probability `rate` and is multiplied with 1 / (1 - rate) otherwise; in
// evaluation nothing happens. Which ones go is a pure function of (seed, step, layer, sample,
// unit), so it depends neither on who computes the sample nor on what was trained before.
// Thread-safe.

#include <cstdint>
#include <string>

namespace renzan {

struct DropoutOptions {
  double rate = 0;  // in [0, 1)
  uint64_t seed = 0;
};

// Where in training the samples of a pass stand.
struct TrainingPosition {
  int64_t step = 0;
  int64_t first_sample = 0;  // of the pass, within the global batch
};

class Dropout {
 public:
  Dropout(const DropoutOptions& options, const std::string& layer);

  bool enabled() const { return threshold_ > 0; }

  // What the gradient of an activation that stayed is multiplied with.
  float scale() const { return scale_; }

  // y [samples, units] with rows `stride` apart, in place.
  void Apply(const TrainingPosition& position, int64_t samples, int64_t units, float* y,
             int64_t stride) const;

 private:
  uint64_t key_;
  uint32_t threshold_;  // an activation goes where its random word is below
  float scale_;
};

}  // namespace renzan
