#pragma once

// The one list of metrics: which outputs have them, what they are called, how they are read and
// which is better. Tables, JSON, logs, early stopping and its refusals follow it.

#include <cmath>
#include <string>
#include <vector>

#include "renzan/model/evaluation.h"
#include "renzan/model/grouped_metrics.h"
#include "renzan/model/loss.h"

namespace renzan {

// What an output is, in evaluations.
enum class OutputKind {
  kProbability,  // the logit of one
  kScore,        // of a query and an item, from which no probability can be told (ComparesItems)
  kNumber,
};
OutputKind KindOf(Loss loss, bool compares_items);

enum class Better { kNeither, kMore, kLess };

// What evaluations do for it: training.ranking, training.group_by.
enum class Needs { kNothing, kRanking, kGroups };

struct OutputMetric {
  const char* name = nullptr;   // in JSON, and where metrics are compared
  const char* words = nullptr;  // in tables and messages; null: in neither, nor in JSON
  const char* table = "{:.5f}";
  const char* line = nullptr;  // the format in lines about evaluations; null: not in them
  bool in_weighted_line = false;
  const char* tag = nullptr;  // in metrics.jsonl and TensorBoard; null: not in them
  // The kinds of output that have it in evaluations, and those that have it of training's steps.
  // In training, the logit of an output that compares items is that of a probability.
  std::vector<OutputKind> evaluated = {}, trained = evaluated;
  Better better = Better::kNeither;
  double (OutputMetrics::*value)() const = nullptr;
  double (WeightedMetrics::*weighted)() const = nullptr;
  double GroupScores::*of_group = nullptr;  // where rows are grouped
  // Instead of these, of what has more than one way to be measured.
  Needs needs = Needs::kNothing;
  double (*more)(const Evaluation&, bool by_weight) = nullptr;

  bool IsOf(OutputKind kind) const;
  bool IsTrained(OutputKind kind) const;
  bool can_be_compared() const { return better != Better::kNeither; }

  double Of(const OutputMetrics& metrics) const { return (metrics.*value)(); }
  double Of(const WeightedMetrics& metrics) const { return (metrics.*weighted)(); }
  // The one by which evaluations are compared. NaN if it is undefined, as for one class.
  double Of(const Evaluation& evaluation, bool by_weight) const;
};

// All, in the order in which they are shown.
const std::vector<OutputMetric>& AllMetrics();

// Whether anything shows it. Without rows of both labels, a score has no AUC.
inline bool IsShown(OutputKind kind, double value) {
  return kind != OutputKind::kScore || !std::isnan(value);
}

// Calls visit(metric, value) for those that an evaluation of such an output shows.
template <typename Metrics, typename Visit>
void ForEachMetric(OutputKind kind, const Metrics& metrics, const Visit& visit) {
  for (const OutputMetric& metric : AllMetrics()) {
    if (metric.value == nullptr || !metric.IsOf(kind)) continue;
    const double value = metric.Of(metrics);
    if (IsShown(kind, value)) visit(metric, value);
  }
}

// By which evaluations can be compared; null if there is no such metric. "" is DefaultMetric() of
// a probability.
const OutputMetric* FindComparedMetric(const std::string& name);
// The names of those, and "" before them, which stands for DefaultMetric().
std::vector<std::string> ComparedMetricChoices();
// The same of outputs of one kind, without "".
std::vector<std::string> ComparedMetricNames(OutputKind kind);
std::string DefaultMetric(OutputKind kind);

// What a metric by which evaluations are compared needs.
Needs NeedsOf(const std::string& name);
// Whether items have to be ranked for it.
bool IsRankingMetric(const std::string& name);

}  // namespace renzan
