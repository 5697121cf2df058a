#include "renzan/quality/evaluation_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/config/train_config.h"

namespace renzan {
namespace {

// Of one positive and one negative sample, with approximately this log loss.
Evaluation WithLoss(double loss) {
  const float logit = static_cast<float>(-std::log(std::expm1(loss)));
  OutputMetrics metrics;
  metrics.Add(std::vector<float>{logit, -logit}, std::vector<float>{1, 0});
  return {.metrics = std::move(metrics)};
}

// For each loss in turn, whether it is the best so far.
std::vector<bool> Bests(const EarlyStoppingConfig& config, EvaluationRecord* record,
                        const std::vector<double>& losses) {
  std::vector<bool> bests;
  int64_t step = 0;
  for (double loss : losses) bests.push_back(record->Observe(config, step += 10, WithLoss(loss)));
  return bests;
}

TEST(EvaluationRecord, FindsTheBestAndStopsWhenPatienceIsExhausted) {
  const EarlyStoppingConfig config{.metric = "log_loss", .patience = 2};
  EvaluationRecord record;
  EXPECT_TRUE(record.empty());
  EXPECT_EQ(Bests(config, &record, {0.6, 0.5, 0.55, 0.45, 0.45}),
            (std::vector<bool>{true, true, false, true, false}));
  EXPECT_EQ(record.best_step(), 40);
  EXPECT_NEAR(record.best_value(), 0.45, 1e-6);
  EXPECT_FALSE(record.StopsEarly(config));
  EXPECT_FALSE(record.Observe(config, 60, WithLoss(0.46)));
  EXPECT_TRUE(record.StopsEarly(config));
  EXPECT_FALSE(record.StopsEarly(EarlyStoppingConfig{}));
  EXPECT_EQ(record.Describe(config), "the best log_loss was 0.45000 at step 40, 2 evaluations ago");
}

TEST(EvaluationRecord, ComparesRankings) {
  EvaluationRecord record;
  const auto observe = [&](const char* metric, int64_t step, int64_t rank) {
    RankingMetrics ranking(20);
    ranking.Add(rank);
    Evaluation evaluation = WithLoss(0.6);
    evaluation.ranking = std::move(ranking);
    evaluation.ranked_at = 10;
    return record.Observe({.metric = metric}, step, evaluation);
  };
  for (const char* metric : {"hr", "ndcg", "mrr"}) {
    record = EvaluationRecord();
    EXPECT_TRUE(observe(metric, 1, 12));
    EXPECT_TRUE(observe(metric, 2, 4)) << metric;
    EXPECT_FALSE(observe(metric, 3, 4));
    EXPECT_FALSE(observe(metric, 4, 11));
  }
  EXPECT_NEAR(record.best_value(), 0.25, 1e-12);
}

TEST(EvaluationRecord, ComparesGroupAuc) {
  // One group that is ordered right, and one whose pair is wrong.
  const auto grouped = [](std::vector<int64_t> groups) {
    GroupedMetrics metrics(WeightUnits(4));
    metrics.Add(groups, std::vector<float>{0, 1, 1, 0}, std::vector<float>{0, 1, 0, 1},
                std::vector<float>{1, 1, 4, 4});
    Evaluation evaluation = WithLoss(0.6);
    evaluation.groups = metrics.Aucs();
    return evaluation;
  };
  const EarlyStoppingConfig config{.metric = "group_auc", .patience = 2};
  EvaluationRecord once("group_auc"), weighted("group_auc", true);
  for (EvaluationRecord* record : {&once, &weighted})
    EXPECT_TRUE(record->Observe(config, 1, grouped({7, 7, 9, 9})));
  EXPECT_EQ(once.best_value(), 0.5);
  EXPECT_EQ(weighted.best_value(), 0.2);
  EXPECT_TRUE(once.Observe(config, 2, grouped({7, 7, 9, 8})));
  EXPECT_EQ(once.best_value(), 1);
  try {
    once.Observe(config, 3, grouped({6, 7, 9, 8}));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no value of training.group_by has rows of"));
  }
}

TEST(EvaluationRecord, SmallImprovementsDoNotResetThePatience) {
  const EarlyStoppingConfig config{.metric = "log_loss", .patience = 2, .min_delta = 0.05};
  EvaluationRecord record;
  EXPECT_EQ(Bests(config, &record, {0.6, 0.58, 0.56}), (std::vector<bool>{true, true, true}));
  EXPECT_TRUE(record.StopsEarly(config));
  EXPECT_EQ(record.best_step(), 30);
  // Several small improvements add up to a large one.
  EvaluationRecord patient;
  const EarlyStoppingConfig longer{.metric = "log_loss", .patience = 3, .min_delta = 0.05};
  Bests(longer, &patient, {0.6, 0.58, 0.56, 0.54});
  EXPECT_FALSE(patient.StopsEarly(longer));
  Bests(longer, &patient, {0.54, 0.54});
  EXPECT_FALSE(patient.StopsEarly(longer));
}

TEST(EvaluationRecord, AHigherAucIsBetter) {
  const EarlyStoppingConfig config{.metric = "auc", .patience = 1};
  Evaluation right, wrong;
  right.metrics.Add(std::vector<float>{1, -1}, std::vector<float>{1, 0});
  wrong.metrics.Add(std::vector<float>{-1, 1}, std::vector<float>{1, 0});
  EvaluationRecord record;
  EXPECT_TRUE(record.Observe(config, 1, wrong));
  EXPECT_TRUE(record.Observe(config, 2, right));
  EXPECT_FALSE(record.Observe(config, 3, wrong));
  EXPECT_TRUE(record.StopsEarly(config));
}

TEST(EvaluationRecord, NonFiniteMetricsAreNeverTheBest) {
  const EarlyStoppingConfig config{.metric = "log_loss", .patience = 1};
  Evaluation non_finite = WithLoss(0.1);
  non_finite.metrics.Add(std::vector<float>{std::nanf("")}, std::vector<float>{1});
  EvaluationRecord record;
  EXPECT_FALSE(record.Observe(config, 1, non_finite));
  EXPECT_EQ(record.best_step(), -1);
}

TEST(EvaluationRecord, RejectsDataOfOneClass) {
  Evaluation one_class;
  one_class.metrics.Add(std::vector<float>{1, -1}, std::vector<float>{1, 1});
  EvaluationRecord record;
  try {
    record.Observe({.metric = "auc"}, 1, one_class);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_NE(std::string(error.what()).find("rows of both classes"), std::string::npos);
  }
}

// Two models, each right about another sample.
TEST(EvaluationRecord, ComparesWeightedMetricsWhereThereAreWeights) {
  const EarlyStoppingConfig config{.metric = "log_loss", .patience = 1};
  const std::vector<float> labels = {1, 0}, weights = {1, 3};
  EvaluationRecord plain("log_loss of a"), weighted("log_loss of a", true);
  const auto observe = [&](EvaluationRecord* record, int64_t step,
                           const std::vector<float>& logits) {
    Evaluation evaluation{.weighted = WeightedMetrics(3)};
    evaluation.metrics.Add(logits, labels);
    evaluation.weighted->Add(logits, labels, weights);
    return record->Observe(config, step, evaluation);
  };
  for (EvaluationRecord* record : {&plain, &weighted}) observe(record, 1, {3, 0.5});
  EXPECT_FALSE(observe(&plain, 2, {-0.7f, -2}));
  EXPECT_TRUE(observe(&weighted, 2, {-0.7f, -2}));
  observe(&weighted, 3, {3, 0.5});
  EXPECT_THAT(weighted.Describe(config), ::testing::HasSubstr("the best weighted log_loss was"));
  // Values with and without weights cannot be compared.
  EXPECT_FALSE(EvaluationRecord("log_loss of a", true).Restore(plain.ToIntegers()));
  EXPECT_TRUE(EvaluationRecord("log_loss of a", true).Restore(weighted.ToIntegers()));
  EXPECT_FALSE(weighted.Emptied().Restore(plain.ToIntegers()));
}

TEST(EvaluationRecord, IsRestoredOnlyWithTheSameMeaning) {
  const EarlyStoppingConfig config{.metric = "log_loss", .patience = 3, .min_delta = 0.01};
  EvaluationRecord record("log_loss of a");
  Bests(config, &record, {0.6, 0.595, 0.61});
  const std::vector<int64_t> saved = record.ToIntegers();

  EvaluationRecord same("log_loss of a"), other("auc of a");
  EXPECT_TRUE(same.Restore(saved));
  EXPECT_EQ(same.ToIntegers(), saved);
  EXPECT_FALSE(same.StopsEarly(config));
  same.Observe(config, 40, WithLoss(0.62));
  EXPECT_TRUE(same.StopsEarly(config));
  EXPECT_FALSE(other.Restore(saved));
  EXPECT_TRUE(other.empty());
  EXPECT_THROW(same.Restore({saved.data(), 3}), Error);
}

TEST(EvaluationRecord, ReturnsItsStateAtTheBestStep) {
  const EarlyStoppingConfig config{.metric = "log_loss", .patience = 9, .min_delta = 0.05};
  EvaluationRecord record, at_best;
  Bests(config, &at_best, {0.6, 0.62, 0.59});
  Bests(config, &record, {0.6, 0.62, 0.59, 0.61, 0.6});
  EXPECT_EQ(record.AtItsBest().ToIntegers(), at_best.ToIntegers());
}

TEST(EvaluationRecord, ErrorsOfNumbersAreBetterWhenTheyAreSmaller) {
  const auto with_error = [](float error) {
    Evaluation evaluation;
    evaluation.metrics.AddNumbers(std::vector<float>{3 + error}, std::vector<float>{3});
    return evaluation;
  };
  for (const char* metric : {"rmse", "mae"}) {
    const EarlyStoppingConfig config{.metric = metric, .patience = 2};
    EvaluationRecord record;
    EXPECT_TRUE(record.Observe(config, 1, with_error(0.5)));
    EXPECT_FALSE(record.Observe(config, 2, with_error(-0.75)));
    EXPECT_TRUE(record.Observe(config, 3, with_error(-0.25)));
    EXPECT_EQ(record.best_value(), 0.25);
    try {
      record.Observe(config, 4, Evaluation());
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("no row of it has the label"));
    }
  }
}

}  // namespace
}  // namespace renzan
