#include "renzan/model/blocks/multiply.h"

#include <fmt/format.h>

#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/elementwise.h"

namespace renzan {
namespace {

Shape ProductOf(const BlockPlace& place) {
  if (place.inputs.size() != 2) place.Reject("takes two inputs");
  const Shape &a = place.inputs[0], &b = place.inputs[1];
  if (ColumnsOf(a) != ColumnsOf(b))
    place.Reject(
        fmt::format("takes inputs of one width, but has {} and {}", Describe(a), Describe(b)));
  return a;
}

class MultiplyBlock final : public Block {
 public:
  explicit MultiplyBlock(const BlockPlace& place) : Block(ProductOf(place), SequenceOfAll(place)) {}

  Needs NewestNeeds() const override { return Needs::kNewest; }
  double Flops(bool) const override { return 3 * static_cast<double>(ComputedColumns()); }

  void Forward(const BlockPass&, Inputs inputs, BlockedMatrix* output) const override {
    Multiply(*inputs[0], *inputs[1], output);
  }

  void Backward(const BlockPass&, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    for (size_t i = 0; i < 2; ++i)
      if (d_inputs[i] != nullptr) Multiply(*d_output, *inputs[1 - i], d_inputs[i]);
  }
};

}  // namespace

std::unique_ptr<Block> Product::Make(const BlockPlace& place) const {
  return std::make_unique<MultiplyBlock>(place);
}

}  // namespace renzan
