#pragma once

// Quality of predictions within groups of samples (all samples of a user, a country, a publisher),
// and group AUC: the mean of the groups' AUCs, weighted by their number of samples (Zhu et al.,
// "Optimized cost per click in Taobao display advertising", KDD 2017). A model that only learns
// which users click a lot has a high AUC but a group AUC of 0.5.
//
// Ranks are exact, and the result does not depend on the order in which samples are added, or on
// how groups are split among workers. Takes 16 bytes per sample. Not thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "renzan/model/metrics.h"
#include "renzan/model/weight_units.h"

namespace renzan {

// Each row counts once, or as much as its weight.
struct GroupScores {
  double rows = 0;         // their number, or the sum of their weights
  FixedSum units = 0;      // the same as an integer: their number, or WeightUnits
  double auc = 0;          // NaN if one class is absent, or has no weight
  double log_loss = 0;     // mean; NaN without weight
  double calibration = 0;  // sum of predictions over number of positives; NaN without positives
};

struct GroupMetrics {
  int64_t group = 0;
  int64_t count = 0, positives = 0;
  GroupScores scores;
  std::optional<GroupScores> weighted;  // as with scikit-learn's sample_weight
};

// Group AUC as sums of integers, so that the order of the groups does not matter.
class GroupAucMean {
 public:
  // A group without an AUC does not count.
  void Add(const GroupScores& scores);
  void Merge(const GroupAucMean& other);
  double Value() const;  // NaN if no group has an AUC

 private:
  FixedSum auc_ = 0;  // of all rows, each with its group's, in units of 2^-52
  FixedSum rows_ = 0;
};

struct GroupAucs {
  GroupAucMean once;
  std::optional<GroupAucMean> weighted;
  int64_t rows = 0, unseen_rows = 0;  // all that were grouped; in the group of unseen values
};

struct GroupedSample {
  uint64_t group_and_label;  // group << 1 | label
  float logit;
  float weight;  // 0 without units

  uint64_t group() const { return group_and_label >> 1; }
  bool positive() const { return (group_and_label & 1) != 0; }
};

class GroupedMetrics {
 public:
  // `units`: of the samples' weights; none if they have none.
  explicit GroupedMetrics(std::optional<WeightUnits> units = std::nullopt) : units_(units) {}

  // [batch] each; `weights` only with units. Groups must not be negative. Non-finite logits are
  // skipped.
  void Add(std::span<const int64_t> groups, std::span<const float> logits,
           std::span<const float> labels, std::span<const float> weights = {});

  // For exchange between workers, which need whole groups.
  std::vector<GroupedSample>& samples() { return samples_; }

  // These sort the samples. Groups by number of samples, largest first, then by group.
  std::vector<GroupMetrics> Groups();
  GroupAucs Aucs();

 private:
  template <typename Visit>
  void ForEachGroup(const Visit& visit);  // by group
  GroupMetrics MetricsOf(std::span<const GroupedSample> group) const;

  std::optional<WeightUnits> units_;
  std::vector<GroupedSample> samples_;
};

// Over the groups with both classes; NaN if there are none. `weighted`: of their weighted scores.
double GroupAuc(std::span<const GroupMetrics> groups, bool weighted = false);

}  // namespace renzan
