#include "renzan/quality/plateau.h"

#include <gtest/gtest.h>

#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// With this AUC: that share of the positives is above all negatives, the others are below.
Evaluation WithAuc(double auc) {
  Evaluation evaluation;
  for (int i = 0; i < 1000; ++i) {
    const float logit[] = {i < auc * 1000 - 0.5 ? 1.0f : -1.0f, 0.0f};
    const float label[] = {1, 0};
    evaluation.metrics.Add(logit, label);
  }
  return evaluation;
}

std::vector<double> Factors(const PlateauConfig& config) {
  Plateau plateau("auc");
  std::vector<double> factors;
  int64_t step = 0;
  for (const double auc :
       {0.6, 0.65, 0.65, 0.655, 0.64, 0.7, 0.69, 0.69, 0.69, 0.69, 0.71, 0.7, 0.7}) {
    const double before = plateau.factor();
    const bool lower = plateau.Observe(config, ++step, WithAuc(auc));
    EXPECT_EQ(lower, plateau.factor() < before);
    // As at every checkpoint.
    Plateau restored("auc");
    restored.Restore(plateau.ToIntegers());
    plateau = restored;
    factors.push_back(plateau.factor());
  }
  return factors;
}

// Recorded from torch.optim.lr_scheduler.ReduceLROnPlateau(threshold_mode="abs"), whose patience is
// less by one.
TEST(Plateau, LowersRatesWherePyTorchDoes) {
  const auto expect = [](const PlateauConfig& config, const std::vector<double>& expected) {
    const std::vector<double> factors = Factors(config);
    ASSERT_EQ(factors.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(factors[i], expected[i]) << i;
  };
  expect({.metric = "auc", .patience = 1, .min_delta = 1e-6, .factor = 0.1, .floor = 1e-3},
         {1, 1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001, 0.001});
  expect({.metric = "auc", .patience = 2, .min_delta = 0.01, .factor = 0.5, .floor = 0.2},
         {1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2});
}

TEST(Plateau, ContinuesOnlyOnTheSameEvaluations) {
  Plateau plateau("auc of these rows");
  plateau.Observe({.metric = "auc", .patience = 1}, 1, WithAuc(0.6));
  EXPECT_THROW(Plateau("auc of others").Restore(plateau.ToIntegers()), Error);
  EXPECT_THROW(Plateau("auc of these rows").Restore({}), Error);
}

}  // namespace
}  // namespace renzan
