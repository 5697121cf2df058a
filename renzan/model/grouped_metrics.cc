#include "renzan/model/grouped_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "renzan/base/error.h"
#include "renzan/model/metrics.h"

namespace renzan {

void GroupedMetrics::Add(std::span<const int64_t> groups, std::span<const float> logits,
                         std::span<const float> labels) {
  CHECK(groups.size() == logits.size() && labels.size() == logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    CHECK(groups[i] >= 0);
    if (!std::isfinite(logits[i])) continue;
    const uint64_t positive = labels[i] > 0.5f ? 1 : 0;
    samples_.push_back({static_cast<uint64_t>(groups[i]) << 1 | positive, logits[i]});
  }
}

std::vector<GroupMetrics> GroupedMetrics::Groups() const {
  std::vector<Sample> sorted = samples_;
  std::sort(sorted.begin(), sorted.end(), [](const Sample& a, const Sample& b) {
    return std::tuple(a.group_and_label >> 1, a.logit, a.group_and_label) <
           std::tuple(b.group_and_label >> 1, b.logit, b.group_and_label);
  });
  std::vector<GroupMetrics> groups;
  for (size_t begin = 0, end; begin < sorted.size(); begin = end) {
    const uint64_t group = sorted[begin].group_and_label >> 1;
    // Twice the Mann-Whitney U statistic: ties count half.
    int64_t twice_u = 0, negatives = 0, positives = 0;
    FixedSum loss = 0, prediction = 0;
    for (end = begin; end < sorted.size() && sorted[end].group_and_label >> 1 == group;) {
      int64_t tied_negatives = 0, tied_positives = 0;
      const float logit = sorted[end].logit;
      for (; end < sorted.size() && sorted[end].group_and_label >> 1 == group &&
             sorted[end].logit == logit;
           ++end) {
        const bool positive = (sorted[end].group_and_label & 1) != 0;
        (positive ? tied_positives : tied_negatives) += 1;
        const FixedScore score = ScoreSample(logit, positive);
        loss += score.loss;
        prediction += score.prediction;
      }
      twice_u += tied_positives * (2 * negatives + tied_negatives);
      negatives += tied_negatives;
      positives += tied_positives;
    }
    const double n = static_cast<double>(negatives), p = static_cast<double>(positives);
    groups.push_back({.group = static_cast<int64_t>(group),
                      .count = negatives + positives,
                      .positives = positives,
                      .auc = n == 0 || p == 0 ? std::numeric_limits<double>::quiet_NaN()
                                              : static_cast<double>(twice_u) / (2 * n * p),
                      .log_loss = FromFixed(loss) / (n + p),
                      .calibration = p == 0 ? std::numeric_limits<double>::quiet_NaN()
                                            : FromFixed(prediction) / p});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const GroupMetrics& a, const GroupMetrics& b) { return a.count > b.count; });
  return groups;
}

double GroupAuc(std::span<const GroupMetrics> groups) {
  double sum = 0, samples = 0;
  for (const GroupMetrics& group : groups) {
    if (std::isnan(group.auc)) continue;
    sum += group.auc * static_cast<double>(group.count);
    samples += static_cast<double>(group.count);
  }
  return samples == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / samples;
}

}  // namespace renzan
