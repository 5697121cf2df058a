#include "renzan/model/grouped_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "renzan/base/philox.h"
#include "renzan/model/metrics.h"

namespace renzan {
namespace {

struct GroupedSamples {
  std::vector<int64_t> groups;
  std::vector<float> logits, labels;
};

GroupedSamples DrawGrouped(uint64_t seed, size_t n) {
  GroupedSamples samples;
  for (size_t i = 0; i < n; ++i) {
    const Philox::Block words = Philox::Draw(seed, i);
    samples.groups.push_back(static_cast<int64_t>(words[0] % 7 * (words[0] % 3)));
    // Few distinct values, so that there are ties.
    samples.logits.push_back(static_cast<float>(words[1] % 11) / 4 - 1);
    samples.labels.push_back(words[2] % 4 == 0 ? 1.0f : 0.0f);
  }
  return samples;
}

// By the definition: over all pairs of a positive and a negative sample.
TEST(GroupedMetrics, AgreeWithTheReferenceImplementation) {
  const GroupedSamples s = DrawGrouped(5, 400);
  GroupedMetrics metrics;
  metrics.Add(s.groups, s.logits, s.labels);
  const std::vector<GroupMetrics> groups = metrics.Groups();
  ASSERT_GT(groups.size(), 5u);
  int64_t samples = 0, before = std::numeric_limits<int64_t>::max();
  double weighted = 0, weights = 0;
  for (const GroupMetrics& group : groups) {
    double better = 0, pairs = 0;
    BinaryMetrics alone;
    for (size_t i = 0; i < s.groups.size(); ++i) {
      if (s.groups[i] != group.group) continue;
      alone.Add({&s.logits[i], 1}, {&s.labels[i], 1});
      for (size_t j = 0; j < s.groups.size(); ++j) {
        if (s.groups[j] != group.group || s.labels[i] == 0 || s.labels[j] == 1) continue;
        ++pairs;
        better += s.logits[i] > s.logits[j] ? 1 : s.logits[i] == s.logits[j] ? 0.5 : 0;
      }
    }
    EXPECT_EQ(group.count, alone.count);
    EXPECT_EQ(group.positives, alone.positives);
    EXPECT_DOUBLE_EQ(group.auc, better / pairs);
    EXPECT_EQ(group.log_loss, alone.LogLoss());
    EXPECT_EQ(group.calibration, alone.Calibration());
    EXPECT_LE(group.count, before);
    before = group.count;
    samples += group.count;
    weighted += better / pairs * static_cast<double>(group.count);
    weights += static_cast<double>(group.count);
  }
  EXPECT_EQ(samples, 400);
  EXPECT_DOUBLE_EQ(GroupAuc(groups), weighted / weights);
}

TEST(GroupedMetrics, AModelThatKnowsOnlyTheGroupsHasAGroupAucOfOneHalf) {
  GroupedSamples s = DrawGrouped(6, 1000);
  for (size_t i = 0; i < s.groups.size(); ++i) {
    s.logits[i] = static_cast<float>(s.groups[i]);
    s.labels[i] = Philox::Draw(7, i)[0] % 20 < static_cast<uint32_t>(s.groups[i]) ? 1.0f : 0.0f;
  }
  GroupedMetrics metrics;
  metrics.Add(s.groups, s.logits, s.labels);
  BinaryMetrics all;
  all.Add(s.logits, s.labels);
  EXPECT_GT(all.Auc(), 0.7);
  EXPECT_EQ(GroupAuc(metrics.Groups()), 0.5);
}

TEST(GroupedMetrics, GroupsOfOneClassAreIgnored) {
  GroupedMetrics metrics;
  metrics.Add(std::vector<int64_t>{1, 1, 2, 2, 2}, std::vector<float>{0, 1, 1, 2, 3},
              std::vector<float>{0, 1, 0, 0, 0});
  const std::vector<GroupMetrics> groups = metrics.Groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].group, 2);
  EXPECT_TRUE(std::isnan(groups[0].auc));
  EXPECT_TRUE(std::isnan(groups[0].calibration));
  EXPECT_EQ(GroupAuc(groups), 1);
  EXPECT_TRUE(std::isnan(GroupAuc({groups.data(), 1})));
  EXPECT_TRUE(GroupedMetrics().Groups().empty());
}

TEST(GroupedMetrics, SkipsNonFiniteLogits) {
  GroupedMetrics metrics;
  metrics.Add(std::vector<int64_t>{1, 1}, std::vector<float>{std::nanf(""), 1},
              std::vector<float>{0, 1});
  ASSERT_EQ(metrics.Groups().size(), 1u);
  EXPECT_EQ(metrics.Groups()[0].count, 1);
}

}  // namespace
}  // namespace renzan
