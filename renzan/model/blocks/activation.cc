#include "renzan/model/blocks/activation.h"

#include "renzan/base/config/config.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

class ActivationBlock final : public Block {
 public:
  ActivationBlock(const std::string& function, const BlockPlace& place)
      : Block(place.input()), function_(ActivationNamed(function)) {}

  double Flops(bool) const override { return 2 * static_cast<double>(ColumnsOf(shape())); }

  void Forward(const BlockPass&, Inputs inputs, BlockedMatrix* output) const override {
    Activate(function_, *inputs.front(), output);
  }

  void Backward(const BlockPass&, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    if (d_inputs.front() == nullptr) return;
    ActivateBackward(function_, *inputs.front(), d_output);
    d_inputs.front()->SetColumns(0, *d_output, 0, d_output->columns());
  }

 private:
  Activation function_;
};

}  // namespace

void ActivationFunction::Describe(ConfigFields& fields) {
  fields.Choice("function", &function, ActivationNames());
}

std::unique_ptr<Block> ActivationFunction::Make(const BlockPlace& place) const {
  return std::make_unique<ActivationBlock>(function, place);
}

}  // namespace renzan
