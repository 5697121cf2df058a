#pragma once

// Lowers the learning rates where evaluations no longer improve (optimizer.schedule.plateau), as
// torch.optim.lr_scheduler.ReduceLROnPlateau and FuxiCTR do. It is saved with every checkpoint and
// is a pure function of the observed metrics, so every worker decides the same. Not thread-safe.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "renzan/config/optimizer_config.h"
#include "renzan/quality/evaluation_record.h"

namespace renzan {

class Plateau {
 public:
  // Without rates to lower.
  Plateau() = default;
  // `meaning` and `weighted`: as EvaluationRecord takes them.
  explicit Plateau(std::string meaning, bool weighted = false)
      : record_(std::move(meaning), weighted) {}

  // Adds the evaluation after `step` steps. Returns true if the rates are lower from there on.
  // Throws as EvaluationRecord::Observe().
  bool Observe(const PlateauConfig& config, int64_t step, const Evaluation& evaluation);

  // Multiplies all learning rates of the steps from here on.
  double factor() const { return factor_; }
  bool empty() const { return record_.empty(); }

  // For checkpoints: the factor (bits of float64), and what EvaluationRecord saves.
  std::vector<int64_t> ToIntegers() const;
  // Throws kConfig if what is compared has changed, because other evaluations would have given
  // other rates; kData if it is no plateau.
  void Restore(std::span<const int64_t> integers);

 private:
  EvaluationRecord record_;
  double factor_ = 1;
};

}  // namespace renzan
