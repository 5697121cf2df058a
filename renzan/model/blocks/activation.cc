#include "renzan/model/blocks/activation.h"

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/model/blocks/activation_layer.h"
#include "renzan/nn/activation.h"

namespace renzan {
namespace {

// The others have parameters for each column: for each position others.
std::optional<SequenceId> SequenceThrough(const std::string& function, const BlockPlace& place) {
  const std::vector<std::string>& plain = ActivationNames();
  const bool is_plain = std::find(plain.begin(), plain.end(), function) != plain.end();
  return is_plain ? place.SequenceOf(0) : std::nullopt;
}

class ActivationBlock final : public Block {
 public:
  ActivationBlock(const std::string& function, const BlockPlace& place)
      : Block(place.input(), SequenceThrough(function, place)),
        layer_(MakeActivationLayer(function, place, place.name, ColumnsOf(place.input()))) {}

  Needs NewestNeeds() const override { return Needs::kNewest; }
  double Flops(bool) const override { return 2 * static_cast<double>(ComputedColumns()); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    layer_->Forward(pass, *inputs.front(), output);
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    layer_->Backward(pass, *inputs.front(), d_output, gradients);
    if (d_inputs.front() != nullptr) Copy(*d_output, d_inputs.front());
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
