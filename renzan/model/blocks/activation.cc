#include "renzan/model/blocks/activation.h"

#include "renzan/base/config/config.h"
#include "renzan/model/blocks/activation_layer.h"

namespace renzan {
namespace {

class ActivationBlock final : public Block {
 public:
  ActivationBlock(const std::string& function, const BlockPlace& place)
      : Block(place.input()),
        layer_(MakeActivationLayer(function, place, place.name, ColumnsOf(place.input()))) {}

  double Flops(bool) const override { return 2 * static_cast<double>(ColumnsOf(shape())); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    layer_->Forward(pass, *inputs.front(), output);
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    layer_->Backward(pass, *inputs.front(), d_output, gradients);
    if (d_inputs.front() != nullptr)
      d_inputs.front()->SetColumns(0, *d_output, 0, d_output->columns());
  }

 private:
  std::unique_ptr<ActivationLayer> layer_;
};

}  // namespace

void ActivationFunction::Describe(ConfigFields& fields) {
  fields.Choice("function", &function, ActivationLayerNames());
}

std::unique_ptr<Block> ActivationFunction::Make(const BlockPlace& place) const {
  return std::make_unique<ActivationBlock>(function, place);
}

}  // namespace renzan
