#include "renzan/model/blocks/match.h"

#include <fmt/format.h>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/match_inputs.h"

namespace renzan {
namespace {

int64_t WidthOf(const BlockPlace& place) {
  CheckMatchInputs(place, 2, "takes a query and an item");
  return WidthOfMatch(place, [&] {
    return fmt::format("takes a query and an item of one width, but has {} and {}",
                       Describe(place.inputs[kQueryInput]), Describe(place.inputs[kItemInput]));
  });
}

class MatchBlock final : public Block {
 public:
  MatchBlock(const Match& options, const BlockPlace& place)
      : Block({{place.name, 1}}),
        temperature_(static_cast<float>(options.temperature)),
        width_(WidthOf(place)),
        query_row_(place.buffers.AddRow(width_)),
        item_row_(place.buffers.AddRow(width_)) {}

  bool GivesLogit() const override { return true; }
  bool IsMatch() const override { return true; }
  double Flops(bool) const override { return 4 * static_cast<double>(width_); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("match");
    float *const query = pass.rows[query_row_].data(), *const item = pass.rows[item_row_].data();
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs[0]->GetRow(i, 0, query, width_);
      inputs[1]->GetRow(i, 0, item, width_);
      float sum = 0;
      for (int64_t c = 0; c < width_; ++c) sum += query[c] * item[c];
      output->Set(i, 0, sum / temperature_);
    }
  }

  // The gradient of each vector is a multiple of the other one.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("match");
    float* const row = pass.rows[query_row_].data();
    for (size_t input = 0; input < 2; ++input) {
      if (d_inputs[input] == nullptr) continue;
      for (int64_t i = 0; i < d_output->rows(); ++i) {
        inputs[1 - input]->GetRow(i, 0, row, width_);
        const float d = d_output->at(i, 0) / temperature_;
        for (int64_t c = 0; c < width_; ++c) row[c] *= d;
        d_inputs[input]->SetRow(i, 0, row, width_);
      }
    }
  }

 private:
  float temperature_;
  int64_t width_;
  size_t query_row_, item_row_;  // of a sample
};

}  // namespace

void Match::Describe(ConfigFields& fields) {
  fields.Range("temperature", &temperature, 1e-6, 1e6,
               "divides the product of the query's vector and the item's");
}

std::unique_ptr<Block> Match::Make(const BlockPlace& place) const {
  return std::make_unique<MatchBlock>(*this, place);
}

}  // namespace renzan
