#pragma once

// Inverted dropout (Srivastava et al., 2014) after the activations of one layer: in training, an
// activation becomes 0 with probability `rate` and is multiplied by 1 / (1 - rate) otherwise; in
// evaluation nothing happens. The dropped units are a pure function of (seed, step, layer, sample,
// unit), independent of which worker computes the sample and of earlier training. Thread-safe.

#include <cstdint>
#include <span>
#include <string>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

struct DropoutOptions {
  double rate = 0;  // in [0, 1)
  uint64_t seed = 0;
};

// Where in training the samples of one forward and backward pass are.
struct TrainingPosition {
  int64_t step = 0;
  int64_t first_sample = 0;  // of the pass, within the global batch
  // How far each row's sample is from the first, unless it is as far as the row.
  std::span<const int32_t> samples = {};
};

class Dropout {
 public:
  Dropout(const DropoutOptions& options, const std::string& layer);

  // The factor for the gradient of a kept activation.
  float scale() const { return scale_; }
  // An activation is dropped if its word is below: word u / 16 % 4 of
  // Philox::Draw(key(), step, sample << 32 | (u / 64 * 16 + u % 16)) for unit u.
  uint32_t threshold() const { return threshold_; }
  uint64_t key() const { return key_; }

  // y [samples, units], in place.
  void Apply(const TrainingPosition& position, BlockedMatrix* y) const;

 private:
  uint64_t key_;
  uint32_t threshold_;
  float scale_;
};

}  // namespace renzan
