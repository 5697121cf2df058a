#include "renzan/quality/evaluation_record.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/config/training_config.h"
#include "renzan/model/output_metric.h"

namespace renzan {
namespace {

const OutputMetric& MetricNamed(const std::string& name) {
  const OutputMetric* metric = FindComparedMetric(name);
  if (metric == nullptr)
    Fail(ErrorCode::kConfig, "the metric '{}' of evaluations is unknown", name);
  return *metric;
}

}  // namespace

bool EvaluationRecord::Observe(const EarlyStoppingConfig& config, int64_t step,
                               const Evaluation& evaluation) {
  const OutputMetric& metric = MetricNamed(config.metric);
  const OutputMetrics& metrics = evaluation.metrics;
  const double value = metric.Of(evaluation, weighted_);
  ++evaluations_;
  if (metrics.non_finite > 0) {
    ++without_improvement_;
    return false;
  }
  if (!std::isfinite(value) && metric.IsOf(OutputKind::kNumber))
    Fail(ErrorCode::kData,
         "evaluations are compared by {}, which is undefined for data.eval: no row of it has the "
         "label{}",
         metric.name, weighted_ ? " and a weight above 0" : "");
  if (!std::isfinite(value) && metric.needs == Needs::kGroups)
    Fail(ErrorCode::kData,
         "evaluations are compared by {}, which is undefined for data.eval: no value of "
         "training.group_by has rows of both classes{}: group by a column with fewer values, or "
         "evaluate more rows",
         metric.name, weighted_ ? " whose weights are not all 0" : "");
  if (!std::isfinite(value))
    Fail(ErrorCode::kData,
         "evaluations are compared by {}, which is undefined for data.eval: it has {}, {} of them "
         "positive; use rows of both classes{}",
         metric.name, Counted(metrics.count, "sample"), metrics.positives,
         weighted_ ? ", whose weights are not all 0" : "");
  // By how much `value` is better; negative if it is worse.
  const auto gain = [&](double than) {
    return metric.better == Better::kMore ? value - than : than - value;
  };
  const bool first = best_step_ < 0;
  if (first || gain(reference_value_) > config.min_delta) {
    reference_value_ = value;
    without_improvement_ = 0;
  } else {
    ++without_improvement_;
  }
  if (!first && gain(best_value_) <= 0) return false;
  best_value_ = value;
  best_step_ = step;
  best_evaluation_ = evaluations_;
  return true;
}

bool EvaluationRecord::StopsEarly(const EarlyStoppingConfig& config) const {
  return config.patience > 0 && without_improvement_ >= config.patience;
}

EvaluationRecord EvaluationRecord::AtItsBest() const {
  EvaluationRecord record = *this;
  record.evaluations_ = best_evaluation_;
  // The best evaluation need not have improved by min_delta.
  record.without_improvement_ =
      std::max<int64_t>(0, without_improvement_ - (evaluations_ - best_evaluation_));
  return record;
}

std::string EvaluationRecord::MetricName(const EarlyStoppingConfig& config) const {
  return (weighted_ ? "weighted " : "") + config.watched();
}

std::string EvaluationRecord::Describe(const EarlyStoppingConfig& config) const {
  if (best_step_ < 0) return "";
  const int64_t ago = evaluations_ - best_evaluation_;
  if (ago == 0) return "the best so far";
  return fmt::format("the best {} was {:.5f} at step {}, {} ago", MetricName(config), best_value_,
                     best_step_, Counted(ago, "evaluation"));
}

int64_t EvaluationRecord::MeaningDigest() const {
  const std::string meaning = weighted_ ? meaning_ + " weighted" : meaning_;
  return std::bit_cast<int64_t>(PhiloxKey(0, meaning.c_str()));
}

std::vector<int64_t> EvaluationRecord::ToIntegers() const {
  return {MeaningDigest(),
          evaluations_,
          best_step_,
          best_evaluation_,
          std::bit_cast<int64_t>(best_value_),
          std::bit_cast<int64_t>(reference_value_),
          without_improvement_};
}

bool EvaluationRecord::Restore(std::span<const int64_t> integers) {
  if (integers.size() != ToIntegers().size())
    Fail(ErrorCode::kData, "{} integers are not a record of evaluations", integers.size());
  if (integers[0] != MeaningDigest()) return false;
  evaluations_ = integers[1];
  best_step_ = integers[2];
  best_evaluation_ = integers[3];
  best_value_ = std::bit_cast<double>(integers[4]);
  reference_value_ = std::bit_cast<double>(integers[5]);
  without_improvement_ = integers[6];
  return true;
}

}  // namespace renzan
