#pragma once

// Detects early that a model is not learning, and advises what to try. A learning rate that is too
// high gives NaN (see finiteness.h) or, silently, an AUC of 0.5. Not thread-safe; deterministic.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/model/metrics.h"

namespace renzan {

class DivergenceWatch {
 public:
  // `window`: the metrics of the steps since the last call; `step`: the steps done so far. Returns
  // advice, once, if the AUC stays at 0.5 over at least 200 steps and enough samples.
  std::optional<std::string> Observe(int64_t step, const OutputMetrics& window);

  // The state for checkpoints: the accumulated metrics, the step at which they begin, and whether
  // advice was given. FromIntegers throws Error kData.
  std::vector<int64_t> ToIntegers() const;
  static DivergenceWatch FromIntegers(std::span<const int64_t> integers);

 private:
  OutputMetrics sum_;
  int64_t since_step_ = 0;  // the step at which sum_ begins
  bool warned_ = false;
};

}  // namespace renzan
