#include "renzan/model/grouped_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kAucOne = 0x1.0p52;
constexpr double kNoGroupScore = std::numeric_limits<double>::quiet_NaN();

// Of one group's samples, in the order of their logits. Their weights are integers: 1 or
// WeightUnits.
class ScoreSums {
 public:
  // Samples with another logit follow.
  void NextLogit() {
    won_ += static_cast<double>(tied_positive_) *
            (static_cast<double>(negative_) + 0.5 * static_cast<double>(tied_negative_));
    positive_ += std::exchange(tied_positive_, 0);
    negative_ += std::exchange(tied_negative_, 0);
  }
  void Add(bool positive, const FixedScore& score, int64_t weight) {
    (positive ? tied_positive_ : tied_negative_) += weight;
    loss_ += FixedSum{weight} * score.loss;
    prediction_ += FixedSum{weight} * score.prediction;
  }
  // After the last NextLogit().
  GroupScores Scores() const {
    const auto n = static_cast<double>(negative_), p = static_cast<double>(positive_);
    return {.rows = n + p,
            .units = negative_ + positive_,
            .auc = n == 0 || p == 0 ? kNoGroupScore : won_ / (n * p),
            .log_loss = n + p == 0 ? kNoGroupScore : FromFixed(loss_) / (n + p),
            .calibration = p == 0 ? kNoGroupScore : FromFixed(prediction_) / p};
  }

 private:
  FixedSum positive_ = 0, negative_ = 0, tied_positive_ = 0, tied_negative_ = 0;
  FixedSum loss_ = 0, prediction_ = 0;
  double won_ = 0;  // pairs, a tie counting half
};

}  // namespace

void GroupedMetrics::Add(std::span<const int64_t> groups, std::span<const float> logits,
                         std::span<const float> labels, std::span<const float> weights) {
  CHECK(groups.size() == logits.size() && labels.size() == logits.size());
  CHECK(weights.size() == (units_ ? logits.size() : 0));
  for (size_t i = 0; i < logits.size(); ++i) {
    CHECK(groups[i] >= 0);
    if (!std::isfinite(logits[i]) || std::isnan(labels[i])) continue;
    const uint64_t positive = labels[i] > 0.5f ? 1 : 0;
    samples_.push_back(
        {static_cast<uint64_t>(groups[i]) << 1 | positive, logits[i], units_ ? weights[i] : 0});
  }
}

template <typename Visit>
void GroupedMetrics::ForEachGroup(const Visit& visit) {
  std::sort(samples_.begin(), samples_.end(), [](const GroupedSample& a, const GroupedSample& b) {
    return std::tuple(a.group(), a.logit) < std::tuple(b.group(), b.logit);
  });
  for (size_t begin = 0, end; begin < samples_.size(); begin = end) {
    end = begin + 1;
    while (end < samples_.size() && samples_[end].group() == samples_[begin].group()) ++end;
    visit(MetricsOf(std::span(samples_).subspan(begin, end - begin)));
  }
}

std::vector<GroupMetrics> GroupedMetrics::Groups() {
  std::vector<GroupMetrics> groups;
  ForEachGroup([&](const GroupMetrics& group) { groups.push_back(group); });
  std::stable_sort(groups.begin(), groups.end(),
                   [](const GroupMetrics& a, const GroupMetrics& b) { return a.count > b.count; });
  return groups;
}

GroupAucs GroupedMetrics::Aucs() {
  GroupAucs aucs;
  if (units_) aucs.weighted.emplace();
  ForEachGroup([&](const GroupMetrics& group) {
    aucs.once.Add(group.scores);
    if (group.weighted) aucs.weighted->Add(*group.weighted);
  });
  return aucs;
}

GroupMetrics GroupedMetrics::MetricsOf(std::span<const GroupedSample> group) const {
  GroupMetrics metrics{.group = static_cast<int64_t>(group.front().group()),
                       .count = std::ssize(group)};
  ScoreSums once, weighted;
  for (size_t i = 0; i < group.size(); ++i) {
    const GroupedSample& sample = group[i];
    if (i > 0 && sample.logit != group[i - 1].logit)
      for (ScoreSums* sums : {&once, &weighted}) sums->NextLogit();
    const FixedScore score = ScoreSample(sample.logit, sample.positive());
    metrics.positives += sample.positive();
    once.Add(sample.positive(), score, 1);
    if (units_) weighted.Add(sample.positive(), score, units_->Of(sample.weight));
  }
  for (ScoreSums* sums : {&once, &weighted}) sums->NextLogit();
  metrics.scores = once.Scores();
  if (!units_) return metrics;
  metrics.weighted = weighted.Scores();
  metrics.weighted->rows = units_->Value(metrics.weighted->rows);
  return metrics;
}

void GroupAucMean::Add(const GroupScores& scores) {
  if (std::isnan(scores.auc)) return;
  auc_ += scores.units * std::llround(scores.auc * kAucOne);
  rows_ += scores.units;
}

void GroupAucMean::Merge(const GroupAucMean& other) {
  auc_ += other.auc_;
  rows_ += other.rows_;
}

double GroupAucMean::Value() const {
  if (rows_ == 0) return kNoGroupScore;
  return static_cast<double>(auc_) / kAucOne / static_cast<double>(rows_);
}

double GroupAuc(std::span<const GroupMetrics> groups, bool weighted) {
  GroupAucMean mean;
  for (const GroupMetrics& group : groups) mean.Add(weighted ? *group.weighted : group.scores);
  return mean.Value();
}

}  // namespace renzan
