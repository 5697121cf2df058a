#include "renzan/model/grouped_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "renzan/base/philox.h"
#include "renzan/model/metrics.h"
#include "renzan/model/weighted_metrics.h"

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
    OutputMetrics alone;
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
    EXPECT_DOUBLE_EQ(group.scores.auc, better / pairs);
    EXPECT_EQ(group.scores.log_loss, alone.LogLoss());
    EXPECT_EQ(group.scores.calibration, alone.Calibration());
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
  OutputMetrics all;
  all.Add(s.logits, s.labels);
  EXPECT_GT(all.Auc(), 0.7);
  EXPECT_EQ(GroupAuc(metrics.Groups()), 0.5);
}

// By the definition, pair by pair; group AUC weights the groups by their weight.
TEST(GroupedMetrics, WeightsCountAsInTheDefinition) {
  const GroupedSamples s = DrawGrouped(8, 400);
  std::vector<float> weights;
  for (size_t i = 0; i < s.groups.size(); ++i)
    weights.push_back(static_cast<float>(Philox::Draw(9, i)[0] % 5) / 1024);
  GroupedMetrics metrics(WeightUnits(5.0 / 1024));
  metrics.Add(s.groups, s.logits, s.labels, weights);
  const std::vector<GroupMetrics> groups = metrics.Groups();
  double sum = 0, all = 0;
  for (const GroupMetrics& group : groups) {
    double better = 0, pairs = 0;
    WeightedMetrics alone(5.0 / 1024);
    for (size_t i = 0; i < s.groups.size(); ++i) {
      if (s.groups[i] != group.group) continue;
      alone.Add({&s.logits[i], 1}, {&s.labels[i], 1}, {&weights[i], 1});
      for (size_t j = 0; j < s.groups.size(); ++j) {
        if (s.groups[j] != group.group || s.labels[i] == 0 || s.labels[j] == 1) continue;
        const double weight = double{weights[i]} * weights[j];
        pairs += weight;
        better += weight * (s.logits[i] > s.logits[j] ? 1 : s.logits[i] == s.logits[j] ? 0.5 : 0);
      }
    }
    ASSERT_TRUE(group.weighted);
    EXPECT_EQ(group.weighted->rows, alone.SumOfWeights());
    EXPECT_DOUBLE_EQ(group.weighted->auc, better / pairs);
    EXPECT_DOUBLE_EQ(group.weighted->log_loss, alone.LogLoss());
    EXPECT_DOUBLE_EQ(group.weighted->calibration, alone.Calibration());
    EXPECT_NE(group.weighted->auc, group.scores.auc);
    sum += better / pairs * alone.SumOfWeights();
    all += alone.SumOfWeights();
  }
  EXPECT_DOUBLE_EQ(GroupAuc(groups, true), sum / all);
  // The order of the samples does not matter, nor do weights to the other scores.
  GroupedMetrics backwards(WeightUnits(5.0 / 1024)), plain;
  for (size_t i = s.groups.size(); i-- > 0;)
    backwards.Add({&s.groups[i], 1}, {&s.logits[i], 1}, {&s.labels[i], 1}, {&weights[i], 1});
  plain.Add(s.groups, s.logits, s.labels);
  EXPECT_EQ(GroupAuc(backwards.Groups(), true), GroupAuc(groups, true));
  EXPECT_EQ(GroupAuc(backwards.Groups()), GroupAuc(plain.Groups()));
  EXPECT_FALSE(plain.Groups()[0].weighted);
}

// A class all of whose weights are 0 is absent.
TEST(GroupedMetrics, WithoutWeightThereIsNoWeightedScore) {
  GroupedMetrics metrics(WeightUnits(1));
  metrics.Add(std::vector<int64_t>{1, 1}, std::vector<float>{0, 1}, std::vector<float>{0, 1},
              std::vector<float>{0, 1});
  metrics.Add(std::vector<int64_t>{2}, std::vector<float>{0}, std::vector<float>{0},
              std::vector<float>{0});
  const std::vector<GroupMetrics> groups = metrics.Groups();
  EXPECT_EQ(groups[0].scores.auc, 1);
  EXPECT_TRUE(std::isnan(groups[0].weighted->auc));
  EXPECT_TRUE(std::isnan(groups[1].weighted->log_loss));
  EXPECT_TRUE(std::isnan(GroupAuc(groups, true)));
}

TEST(GroupedMetrics, GroupsOfOneClassAreIgnored) {
  GroupedMetrics metrics;
  metrics.Add(std::vector<int64_t>{1, 1, 2, 2, 2}, std::vector<float>{0, 1, 1, 2, 3},
              std::vector<float>{0, 1, 0, 0, 0});
  const std::vector<GroupMetrics> groups = metrics.Groups();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].group, 2);
  EXPECT_TRUE(std::isnan(groups[0].scores.auc));
  EXPECT_TRUE(std::isnan(groups[0].scores.calibration));
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
