#include "renzan/model/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "renzan/base/philox.h"

namespace renzan {
namespace {

// log(1 + exp(x))
double Softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

// The formula of LossOptions, in double precision.
double ReferenceLoss(const LossOptions& options, double x, double label, double weight) {
  const double target = label * (1 - options.label_smoothing) + options.label_smoothing / 2;
  return weight * (options.pos_weight * target * Softplus(-x) + (1 - target) * Softplus(x));
}

float GradientOf(const LossOptions& options, float logit, float label, float weight) {
  float gradient = 0;
  const std::span<const float> weights =
      options.sample_weights ? std::span(&weight, 1) : std::span<const float>();
  BinaryCrossEntropyGradient(options, {&logit, 1}, {&label, 1}, weights, 1, {&gradient, 1});
  return gradient;
}

TEST(Loss, GradientsAreThoseOfTheFormula) {
  for (const double pos_weight : {1.0, 0.25, 40.0})
    for (const double smoothing : {0.0, 0.1, 0.9})
      for (const bool weighted : {false, true}) {
        const LossOptions options = {pos_weight, smoothing, weighted};
        for (const float logit : {-30.f, -4.f, -0.5f, 0.f, 0.125f, 3.f, 25.f})
          for (const float label : {0.f, 1.f}) {
            const float weight = weighted ? 2.5f : 1.f;
            const double h = 1e-5;
            const double expected = (ReferenceLoss(options, logit + h, label, weight) -
                                     ReferenceLoss(options, logit - h, label, weight)) /
                                    (2 * h);
            EXPECT_NEAR(GradientOf(options, logit, label, weight), expected,
                        1e-6 * weight * std::fmax(1, pos_weight))
                << pos_weight << " " << smoothing << " " << weighted << " " << logit << " "
                << label;
          }
      }
}

// As BCEWithLogitsLoss(weight=..., reduction="mean"): not by the sum of the weights.
TEST(Loss, MeanDividesByTheNumberOfSamples) {
  const LossOptions options = {3, 0.2, true};
  const std::vector<float> logits = {1.5f, -2, 0.25f, -0.75f}, labels = {1, 0, 1, 0},
                           weights = {0.5f, 2, 1, 0};
  std::vector<float> d(4);
  BinaryCrossEntropyGradient(options, logits, labels, weights, 4, d);
  for (size_t i = 0; i < d.size(); ++i) {
    const double s = 1 / (1 + std::exp(-double{logits[i]})), t = labels[i] > 0 ? 0.9 : 0.1;
    EXPECT_NEAR(d[i], weights[i] * ((3 * t + 1 - t) * s - 3 * t) / 4, 1e-7) << i;
  }
  EXPECT_EQ(d[3], 0);
}

// Existing models keep their bits.
TEST(Loss, ThePlainLossHasTheBitsOfSigmoidMinusLabel) {
  const int n = 1000;
  std::vector<float> logits, labels, d(n), ones(n, 1.0f), weighted(n);
  for (uint64_t i = 0; i < n; ++i) {
    const Philox::Block words = Philox::Draw(5, i);
    logits.push_back(static_cast<float>(6 * Philox::Normal(words[0], words[1])));
    labels.push_back(words[2] % 3 == 0 ? 1.0f : 0.0f);
  }
  BinaryCrossEntropyGradient({}, logits, labels, {}, 3 * n, d);
  const float scale = 1.0f / static_cast<float>(3 * n);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(d[i], (Sigmoid(logits[i]) - labels[i]) * scale) << i;
  BinaryCrossEntropyGradient({.sample_weights = true}, logits, labels, ones, 3 * n, weighted);
  EXPECT_EQ(weighted, d);
}

TEST(Loss, IsStableForLargeLogits) {
  for (const float label : {0.f, 1.f}) {
    const LossOptions options = {.pos_weight = 7};
    EXPECT_FLOAT_EQ(GradientOf(options, 1000, label, 1), label > 0 ? 0.f : 1.f);
    EXPECT_FLOAT_EQ(GradientOf(options, -1000, label, 1), label > 0 ? -7.f : 0.f);
    EXPECT_FLOAT_EQ(GradientOf(options, 0, label, 1), label > 0 ? -3.5f : 0.5f);
  }
}

// A sample without a label has no gradient; a task's weight multiplies those of the others.
TEST(Loss, LeavesOutSamplesWithoutALabel) {
  const std::vector<float> logits = {1.5f, -2, 0.25f}, labels = {1, std::nanf(""), 0};
  std::vector<float> whole(3), weighted(3);
  BinaryCrossEntropyGradient({}, logits, labels, {}, 3, whole);
  BinaryCrossEntropyGradient({}, logits, labels, {}, 3, weighted, 0.5);
  EXPECT_EQ(whole[1], 0);
  EXPECT_FLOAT_EQ(whole[0], (Sigmoid(1.5f) - 1) / 3);
  EXPECT_FLOAT_EQ(whole[2], Sigmoid(0.25f) / 3);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_FLOAT_EQ(weighted[i], whole[i] / 2);
}

TEST(Loss, SquaredErrorHasTheGradientOfItsFormula) {
  const std::vector<float> outputs = {1.5f, -2, 0.25f, 3}, labels = {4, 0.5f, std::nanf(""), 3},
                           weights = {0.5f, 2, 1, 1};
  for (const bool weighted : {false, true}) {
    LossOptions options;
    options.sample_weights = weighted;
    std::vector<float> d(4);
    SquaredErrorGradient(options, outputs, labels,
                         weighted ? std::span(weights) : std::span<const float>(), 4, d, 0.3);
    for (size_t i = 0; i < d.size(); ++i) {
      const auto loss = [&](double x) {
        if (std::isnan(labels[i])) return 0.0;
        return (weighted ? weights[i] : 1) * (x - labels[i]) * (x - labels[i]);
      };
      const double h = 1e-4;
      const double expected = 0.3 * (loss(outputs[i] + h) - loss(outputs[i] - h)) / (2 * h) / 4;
      EXPECT_NEAR(d[i], expected, 1e-6) << i << weighted;
    }
  }
}

}  // namespace
}  // namespace renzan
