#include "renzan/quality/plateau.h"

#include <algorithm>
#include <bit>

#include "renzan/base/error.h"
#include "renzan/config/training_config.h"

namespace renzan {

bool Plateau::Observe(const PlateauConfig& config, int64_t step, const Evaluation& evaluation) {
  const EarlyStoppingConfig compared{
      .metric = config.metric, .patience = config.patience, .min_delta = config.min_delta};
  record_.Observe(compared, step, evaluation);
  if (!record_.StopsEarly(compared)) return false;
  record_.ResetPatience();
  const double before = factor_;
  factor_ = std::min(factor_, std::max(config.floor, factor_ * config.factor));
  return factor_ < before;
}

std::vector<int64_t> Plateau::ToIntegers() const {
  std::vector<int64_t> integers = record_.ToIntegers();
  integers.insert(integers.begin(), std::bit_cast<int64_t>(factor_));
  return integers;
}

void Plateau::Restore(std::span<const int64_t> integers) {
  if (integers.empty()) Fail(ErrorCode::kData, "the state of optimizer.schedule.plateau is empty");
  if (!record_.Restore(integers.subspan(1)))
    Fail(ErrorCode::kConfig,
         "evaluations measure something else than when this run began (other rows of data.eval, "
         "other weights, or other texts of the key training.group_by), and its learning rates "
         "depend on them (optimizer.schedule.plateau): evaluate as before, or train with another "
         "run directory");
  factor_ = std::bit_cast<double>(integers[0]);
}

}  // namespace renzan
