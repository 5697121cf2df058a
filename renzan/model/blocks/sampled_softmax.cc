#include "renzan/model/blocks/sampled_softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/match_inputs.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/model/blocks/sum_in_lanes.h"

namespace renzan {
namespace {

constexpr size_t kNegativesInput = 2;

// s += a x
void AddMultiple(float a, const float* x, int64_t n, float* s) {
  for (int64_t i = 0; i < n; ++i) s[i] += a * x[i];
}

class SampledSoftmaxBlock final : public Block {
 public:
  SampledSoftmaxBlock(const SampledSoftmax& options, const BlockPlace& place)
      : Block({{place.name, 1}}),
        negatives_(place, kNegativesInput),
        scale_(static_cast<float>(1 / options.temperature)) {
    const auto refusal = [&] {
      return fmt::format(
          "compares {} with {} and {}: query, item and negatives must have one width",
          Describe(place.inputs[kQueryInput]), Describe(place.inputs[kItemInput]),
          Describe(place.inputs[kNegativesInput]));
    };
    const bool sequences =
        place.inputs[kQueryInput].size() != 1 || place.inputs[kItemInput].size() != 1;
    if (sequences || WidthOfMatch(place, refusal) != dim()) place.Reject(refusal());
    probabilities_ = place.buffers.Add(negatives_.positions(), Precision::kFloat32);
    row_ = place.buffers.AddRow(3 * dim() + 2 * negatives_.columns() + negatives_.positions());
  }

  bool GivesLogit() const override { return true; }
  bool IsMatch() const override { return true; }
  bool ComparesItems() const override { return true; }
  bool TakesNegatives(size_t input) const override { return input == kNegativesInput; }
  double Flops(bool d_inputs) const override {
    return (d_inputs ? 6.0 : 2.0) * static_cast<double>(dim() * (1 + negatives_.positions()));
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("sampled softmax");
    const OfSample of = Values(pass);
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs[kQueryInput]->GetRow(i, 0, of.query, dim());
      inputs[kItemInput]->GetRow(i, 0, of.item, dim());
      const float score = scale_ * ProductOf(of.query, of.item, dim());
      if (!pass.training) {
        output->Set(i, 0, score);
        continue;
      }
      inputs[kNegativesInput]->GetRow(i, 0, of.negatives, negatives_.columns());
      for (int64_t k = 0; k < negatives_.positions(); ++k)
        of.probabilities[k] = scale_ * ProductOf(of.query, of.negatives + k * dim(), dim());
      output->Set(i, 0, score - Normalize(of.probabilities));
      pass.buffers[probabilities_].SetRow(i, 0, of.probabilities, negatives_.positions());
    }
  }

  // With p_j, negative j's probability among the negatives: dz/ds = 1, dz/ds_j = −p_j.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients*,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("sampled softmax");
    const OfSample of = Values(pass);
    for (int64_t i = 0; i < output.rows(); ++i) {
      inputs[kQueryInput]->GetRow(i, 0, of.query, dim());
      inputs[kItemInput]->GetRow(i, 0, of.item, dim());
      inputs[kNegativesInput]->GetRow(i, 0, of.negatives, negatives_.columns());
      pass.buffers[probabilities_].GetRow(i, 0, of.probabilities, negatives_.positions());
      const float d = scale_ * d_output->at(i, 0);
      if (d_inputs[kQueryInput] != nullptr) {
        std::fill_n(of.gradient, dim(), 0.0f);
        for (int64_t k = 0; k < negatives_.positions(); ++k)
          AddMultiple(-of.probabilities[k], of.negatives + k * dim(), dim(), of.gradient);
        for (int64_t c = 0; c < dim(); ++c) of.gradient[c] = d * (of.item[c] + of.gradient[c]);
        d_inputs[kQueryInput]->SetRow(i, 0, of.gradient, dim());
      }
      if (d_inputs[kItemInput] != nullptr) {
        for (int64_t c = 0; c < dim(); ++c) of.gradient[c] = d * of.query[c];
        d_inputs[kItemInput]->SetRow(i, 0, of.gradient, dim());
      }
      if (d_inputs[kNegativesInput] == nullptr) continue;
      for (int64_t k = 0; k < negatives_.positions(); ++k)
        for (int64_t c = 0; c < dim(); ++c)
          of.d_negatives[k * dim() + c] = -d * of.probabilities[k] * of.query[c];
      d_inputs[kNegativesInput]->SetRow(i, 0, of.d_negatives, negatives_.columns());
    }
  }

 private:
  // One sample's values, in float32.
  struct OfSample {
    float *query, *item, *gradient, *negatives, *d_negatives, *probabilities;
  };

  int64_t dim() const { return negatives_.dim(); }

  OfSample Values(const BlockPass& pass) const {
    float* next = pass.rows[row_].data();
    const auto take = [&next](int64_t n) { return (next += n) - n; };
    OfSample of = {};
    of.query = take(dim());
    of.item = take(dim());
    of.gradient = take(dim());
    of.negatives = take(negatives_.columns());
    of.d_negatives = take(negatives_.columns());
    of.probabilities = take(negatives_.positions());
    return of;
  }

  // Scores become probabilities. Returns log Σ_k exp(s_k).
  float Normalize(float* scores) const {
    const int64_t n = negatives_.positions();
    const double most = double{*std::max_element(scores, scores + n)};
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double e = std::exp(double{scores[k]} - most);
      scores[k] = static_cast<float>(e);
      sum += e;
    }
    for (int64_t k = 0; k < n; ++k) scores[k] = static_cast<float>(double{scores[k]} / sum);
    return static_cast<float>(most + std::log(sum));
  }

  SequenceInputOf negatives_;
  float scale_;           // 1 / temperature
  size_t probabilities_;  // buffer, between forward and backward
  size_t row_;            // of one sample's values
};

}  // namespace

void SampledSoftmax::Describe(ConfigFields& fields) {
  fields.Range("temperature", &temperature, 1e-3, 1e3, "divides the scores");
}

std::unique_ptr<Block> SampledSoftmax::Make(const BlockPlace& place) const {
  CheckMatchInputs(place, 3, "takes a query, an item and negatives");
  return std::make_unique<SampledSoftmaxBlock>(*this, place);
}

}  // namespace renzan
