#include "renzan/quality/divergence.h"

#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

// The standard error of an AUC around 0.5 (Hanley & McNeil, 1982: √((p + n + 1) / 12pn)).
double StandardError(const OutputMetrics& metrics) {
  const double p = static_cast<double>(metrics.positives);
  const double n = static_cast<double>(metrics.count - metrics.positives);
  return p > 0 && n > 0 ? std::sqrt((p + n + 1) / (12 * p * n)) : 1;
}

}  // namespace

std::optional<std::string> DivergenceWatch::Observe(int64_t step, const OutputMetrics& window) {
  if (warned_) return std::nullopt;
  sum_.Merge(window);
  // A healthy run looks the same in its first steps, or by chance with few samples.
  if (step - since_step_ < 200 || StandardError(sum_) > 0.003) return std::nullopt;
  const double auc = sum_.Auc();
  const int64_t samples = sum_.count;
  sum_ = OutputMetrics();
  since_step_ = step;
  if (auc > 0.51) return std::nullopt;
  warned_ = true;
  return fmt::format(
      "AUC is {:.3f} over the last {} at step {}: the model is not learning. The learning "
      "rate may be too high, even without NaN: lower "
      "optimizer.dense.learning_rate and optimizer.sparse.learning_rate (try a tenth), or add "
      "optimizer.schedule.warmup_steps; random labels cannot be learned",
      auc, Counted(samples, "sample"), step);
}

std::vector<int64_t> DivergenceWatch::ToIntegers() const {
  std::vector<int64_t> integers = sum_.ToIntegers();
  integers.push_back(since_step_);
  integers.push_back(warned_ ? 1 : 0);
  return integers;
}

DivergenceWatch DivergenceWatch::FromIntegers(std::span<const int64_t> integers) {
  constexpr size_t kOwn = 2;
  if (integers.size() < kOwn)
    Fail(ErrorCode::kData, "{} integers are not the state of a divergence watch", integers.size());
  DivergenceWatch watch;
  watch.sum_ = OutputMetrics::FromIntegers(integers.first(integers.size() - kOwn));
  watch.since_step_ = integers[integers.size() - 2];
  watch.warned_ = integers.back() != 0;
  return watch;
}

}  // namespace renzan
