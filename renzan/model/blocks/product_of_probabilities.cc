#include "renzan/model/blocks/product_of_probabilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace renzan {
namespace {

Shape LogitOf(const BlockPlace& place) {
  if (place.inputs.size() < 2) place.Reject("takes two logits or more");
  for (const Shape& input : place.inputs)
    if (ColumnsOf(input) != 1)
      place.Reject(fmt::format("takes logits, but has {}", Describe(input)));
  return {{place.name, 1}};
}

double LogOfSum(double a, double b) {
  const double most = std::max(a, b);
  return most + std::log1p(std::exp(std::min(a, b) - most));
}

// log(1 + exp(-x)): minus the logarithm of a probability.
double MinusLogProbability(double logit) {
  return std::max(-logit, 0.0) + std::log1p(std::exp(-std::abs(logit)));
}

// With u_i = exp(-a_i), the odds against all are q = Π_i (1 + u_i) - 1, all of whose terms are
// positive, and the logit is -log q. Logarithms of q and u_i cannot overflow, and lose nothing
// where probabilities are near 1.
class ProductBlock final : public Block {
 public:
  explicit ProductBlock(const BlockPlace& place) : Block(LogitOf(place)) {}

  bool GivesLogit() const override { return true; }
  bool TakesLogits() const override { return true; }
  bool GivesProbability() const override { return true; }
  double Flops(bool) const override { return 0; }

  void Forward(const BlockPass&, Inputs inputs, BlockedMatrix* output) const override {
    for (int64_t i = 0; i < output->rows(); ++i)
      output->Set(i, 0, static_cast<float>(-LogOddsAgainst(inputs, i)));
  }

  void Backward(const BlockPass&, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    for (int64_t i = 0; i < d_output->rows(); ++i) {
      const double log_odds = LogOddsAgainst(inputs, i), d = d_output->at(i, 0);
      double others = 0;  // log Π_j (1 + u_j)
      for (const BlockedMatrix* input : inputs) others += MinusLogProbability(input->at(i, 0));
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (d_inputs[k] == nullptr) continue;
        const double a = inputs[k]->at(i, 0);
        const double slope = std::exp(others - MinusLogProbability(a) - a - log_odds);
        d_inputs[k]->Set(i, 0, static_cast<float>(d * slope));
      }
    }
  }

 private:
  static double LogOddsAgainst(Inputs inputs, int64_t sample) {
    double log_odds = -double{inputs[0]->at(sample, 0)};
    for (const BlockedMatrix* input : inputs.subspan(1)) {
      const double a = input->at(sample, 0);
      log_odds = LogOfSum(log_odds, LogOfSum(0, log_odds) - a);  // q + u + q u
    }
    return log_odds;
  }
};

}  // namespace

std::unique_ptr<Block> ProductOfProbabilities::Make(const BlockPlace& place) const {
  return std::make_unique<ProductBlock>(place);
}

}  // namespace renzan
