#include "renzan/model/output_metric.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

bool Has(const std::vector<OutputKind>& kinds, OutputKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

const RankingMetrics& RankingOf(const Evaluation& evaluation) {
  CHECK(evaluation.ranking);
  return *evaluation.ranking;
}

double GroupAucOf(const Evaluation& evaluation, bool by_weight) {
  CHECK(evaluation.groups && (!by_weight || evaluation.groups->weighted));
  return (by_weight ? *evaluation.groups->weighted : evaluation.groups->once).Value();
}

std::vector<OutputMetric> MakeMetrics() {
  using enum OutputKind;
  return {
      {.name = "auc",
       .words = "AUC",
       .line = "{:.4f}",
       .in_weighted_line = true,
       .tag = "auc",
       .evaluated = {kProbability, kScore},
       .better = Better::kMore,
       .value = &OutputMetrics::Auc,
       .weighted = &WeightedMetrics::Auc,
       .of_group = &GroupScores::auc},
      {.name = "log_loss",
       .words = "log loss",
       .line = "{:.4f}",
       .in_weighted_line = true,
       .tag = "loss",
       .evaluated = {kProbability},
       .trained = {kProbability, kScore},
       .better = Better::kLess,
       .value = &OutputMetrics::LogLoss,
       .weighted = &WeightedMetrics::LogLoss,
       .of_group = &GroupScores::log_loss},
      {.name = "normalized_entropy",
       .words = "normalized entropy",
       .line = "{:.4f}",
       .tag = "normalized_entropy",
       .evaluated = {kProbability},
       .better = Better::kLess,
       .value = &OutputMetrics::NormalizedEntropy,
       .weighted = &WeightedMetrics::NormalizedEntropy},
      {.name = "calibration",
       .words = "calibration",
       .table = "{:.4f}",
       .line = "{:.3f}",
       .tag = "calibration",
       .evaluated = {kProbability},
       .value = &OutputMetrics::Calibration,
       .weighted = &WeightedMetrics::Calibration,
       .of_group = &GroupScores::calibration},
      {.name = "accuracy",
       .words = "accuracy",
       .table = "{:.4f}",
       .evaluated = {kProbability},
       .value = &OutputMetrics::Accuracy,
       .weighted = &WeightedMetrics::Accuracy},
      {.name = "mean_squared_error",
       .tag = "loss",
       .evaluated = {kNumber},
       .value = &OutputMetrics::MeanSquaredError,
       .weighted = &WeightedMetrics::MeanSquaredError},
      {.name = "rmse",
       .words = "RMSE",
       .line = "{:.4f}",
       .in_weighted_line = true,
       .tag = "rmse",
       .evaluated = {kNumber},
       .better = Better::kLess,
       .value = &OutputMetrics::Rmse,
       .weighted = &WeightedMetrics::Rmse},
      {.name = "mae",
       .words = "MAE",
       .line = "{:.4f}",
       .in_weighted_line = true,
       .tag = "mae",
       .evaluated = {kNumber},
       .better = Better::kLess,
       .value = &OutputMetrics::Mae,
       .weighted = &WeightedMetrics::Mae},
      {.name = "mean_prediction",
       .words = "mean prediction",
       .table = "{:.5g}",
       .line = "{:.4g}",
       .tag = "mean_prediction",
       .evaluated = {kNumber},
       .value = &OutputMetrics::MeanPrediction,
       .weighted = &WeightedMetrics::MeanPrediction},
      {.name = "mean_label",
       .words = "mean label",
       .table = "{:.5g}",
       .line = "{:.4g}",
       .tag = "mean_label",
       .evaluated = {kNumber},
       .value = &OutputMetrics::MeanLabel,
       .weighted = &WeightedMetrics::MeanLabel},
      {.name = "group_auc",
       .evaluated = {kProbability, kScore},
       .trained = {},
       .better = Better::kMore,
       .needs = Needs::kGroups,
       .more = GroupAucOf},
      // NamedValues() of rankings shows these at every rank.
      {.name = "hr",
       .evaluated = {kProbability, kScore},
       .trained = {},
       .better = Better::kMore,
       .needs = Needs::kRanking,
       .more = [](const Evaluation& e, bool) { return RankingOf(e).HitRate(e.ranked_at); }},
      {.name = "ndcg",
       .evaluated = {kProbability, kScore},
       .trained = {},
       .better = Better::kMore,
       .needs = Needs::kRanking,
       .more = [](const Evaluation& e, bool) { return RankingOf(e).Ndcg(e.ranked_at); }},
      {.name = "mrr",
       .evaluated = {kProbability, kScore},
       .trained = {},
       .better = Better::kMore,
       .needs = Needs::kRanking,
       .more = [](const Evaluation& e, bool) { return RankingOf(e).ReciprocalRank(); }},
  };
}

}  // namespace

OutputKind KindOf(Loss loss, bool compares_items) {
  if (loss == Loss::kSquaredError) return OutputKind::kNumber;
  return compares_items ? OutputKind::kScore : OutputKind::kProbability;
}

bool OutputMetric::IsOf(OutputKind kind) const { return Has(evaluated, kind); }

bool OutputMetric::IsTrained(OutputKind kind) const { return Has(trained, kind); }

double OutputMetric::Of(const Evaluation& evaluation, bool by_weight) const {
  if (more != nullptr) return more(evaluation, by_weight);
  CHECK(!by_weight || evaluation.weighted);
  return by_weight ? Of(*evaluation.weighted) : Of(evaluation.metrics);
}

const std::vector<OutputMetric>& AllMetrics() {
  static const std::vector<OutputMetric> metrics = MakeMetrics();
  return metrics;
}

const OutputMetric* FindComparedMetric(const std::string& name) {
  if (name.empty()) return FindComparedMetric(DefaultMetric(OutputKind::kProbability));
  for (const OutputMetric& metric : AllMetrics())
    if (metric.can_be_compared() && name == metric.name) return &metric;
  return nullptr;
}

std::vector<std::string> ComparedMetricChoices() {
  std::vector<std::string> names = {""};
  for (const OutputMetric& metric : AllMetrics())
    if (metric.can_be_compared()) names.push_back(metric.name);
  return names;
}

std::vector<std::string> ComparedMetricNames(OutputKind kind) {
  std::vector<std::string> names;
  for (const OutputMetric& metric : AllMetrics())
    if (metric.can_be_compared() && metric.IsOf(kind)) names.push_back(metric.name);
  return names;
}

std::string DefaultMetric(OutputKind kind) {
  switch (kind) {
    case OutputKind::kProbability:
      return "log_loss";
    case OutputKind::kScore:
      return "ndcg";
    case OutputKind::kNumber:
      return "rmse";
  }
  return "";
}

Needs NeedsOf(const std::string& name) {
  const OutputMetric* const metric = FindComparedMetric(name);
  return metric == nullptr ? Needs::kNothing : metric->needs;
}

bool IsRankingMetric(const std::string& name) { return NeedsOf(name) == Needs::kRanking; }

}  // namespace renzan
