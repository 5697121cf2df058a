#include "renzan/model/blocks/sum.h"

#include <fmt/format.h>

#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/elementwise.h"

namespace renzan {
namespace {

Shape SumOf(const BlockPlace& place) {
  if (place.inputs.empty()) place.Reject("takes at least one input");
  const int64_t width = ColumnsOf(place.inputs.front());
  for (const Shape& input : place.inputs)
    if (ColumnsOf(input) != width)
      place.Reject(fmt::format("takes inputs of one width, but has {} and {}",
                               Describe(place.inputs.front()), Describe(input)));
  if (SequenceOfAll(place)) return place.inputs.front();
  return {{place.name, width}};
}

class SumBlock final : public Block {
 public:
  explicit SumBlock(const BlockPlace& place)
      : Block(SumOf(place), SequenceOfAll(place)), width_(ColumnsOf(place.inputs.front())) {}

  bool GivesLogit() const override { return width_ == 1; }
  bool TakesLogits() const override { return width_ == 1; }
  Needs NewestNeeds() const override { return Needs::kNewest; }
  double Flops(bool) const override { return 0; }

  void Forward(const BlockPass&, Inputs inputs, BlockedMatrix* output) const override {
    if (width_ == 1) return SumLogits(inputs, output);
    Copy(*inputs.front(), output);
    for (const BlockedMatrix* input : inputs.subspan(1)) Add(*input, output);
  }

  void Backward(const BlockPass&, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    for (BlockedMatrix* d_input : d_inputs)
      if (d_input != nullptr) Copy(*d_output, d_input);
  }

 private:
  // Some may be float32, others not.
  static void SumLogits(Inputs inputs, BlockedMatrix* output) {
    for (int64_t i = 0; i < output->rows(); ++i) {
      float sum = 0;
      for (const BlockedMatrix* input : inputs) sum += input->at(i, 0);
      output->Set(i, 0, sum);
    }
  }

  int64_t width_;
};

}  // namespace

std::unique_ptr<Block> Sum::Make(const BlockPlace& place) const {
  return std::make_unique<SumBlock>(place);
}

}  // namespace renzan
