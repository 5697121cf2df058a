#pragma once

// Notices early that a run learns nothing, and says what to try: a learning rate that is too high
// for the recipe gives NaN (see finiteness.h), or silently an AUC of 0.5. Not thread-safe;
// deterministic.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/model/metrics.h"

namespace renzan {

class DivergenceWatch {
 public:
  // Takes the metrics of the steps since the last call, `step` of which are done. Returns advice,
  // once, when the AUC stays at 0.5 over at least 200 steps and enough samples to tell.
  std::optional<std::string> Observe(int64_t step, const BinaryMetrics& window);

  // What it remembers, for checkpoints: the metrics it has summed up, from which step, and whether
  // it has given its advice. FromIntegers throws Error kData.
  std::vector<int64_t> ToIntegers() const;
  static DivergenceWatch FromIntegers(std::span<const int64_t> integers);

 private:
  BinaryMetrics sum_;
  int64_t since_step_ = 0;  // the step at which sum_ begins
  bool warned_ = false;
};

}  // namespace renzan
