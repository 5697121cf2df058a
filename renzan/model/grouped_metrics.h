#pragma once

// Quality of predictions within groups of samples (all samples of a user, a country, a publisher),
// and group AUC: the mean of the groups' AUCs, weighted by their number of samples (Zhu et al.,
// "Optimized cost per click in Taobao display advertising", KDD 2017). A model that only learns
// which users click a lot has a high AUC but a group AUC of 0.5.
//
// Ranks are exact, and the result does not depend on the order in which samples are added. Takes 16
// bytes per sample. Not thread-safe.

#include <cstdint>
#include <span>
#include <vector>

namespace renzan {

struct GroupMetrics {
  int64_t group = 0;
  int64_t count = 0, positives = 0;
  double auc = 0;          // NaN if one class is absent
  double log_loss = 0;     // mean
  double calibration = 0;  // sum of predictions over number of positives; NaN without positives
};

class GroupedMetrics {
 public:
  // [batch] each. Groups must not be negative. Non-finite logits are skipped.
  void Add(std::span<const int64_t> groups, std::span<const float> logits,
           std::span<const float> labels);

  // By number of samples, largest first, then by group.
  std::vector<GroupMetrics> Groups() const;

 private:
  struct Sample {
    uint64_t group_and_label;  // group << 1 | label
    float logit;
  };
  std::vector<Sample> samples_;
};

// Over the groups with both classes; NaN if there are none.
double GroupAuc(std::span<const GroupMetrics> groups);

}  // namespace renzan
