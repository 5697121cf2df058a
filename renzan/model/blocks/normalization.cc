#include "renzan/model/blocks/normalization.h"

#include <fmt/format.h>

#include <utility>

#include "renzan/base/error.h"
#include "renzan/model/blocks/batch_norm.h"
#include "renzan/model/blocks/layer_norm.h"

namespace renzan {
namespace {

class NormalizationBlock final : public Block {
 public:
  NormalizationBlock(const BlockPlace& place, std::unique_ptr<Normalization> normalization,
                     std::optional<SequenceId> sequence)
      : Block(place.input(), sequence), normalization_(std::move(normalization)) {}

  Needs NewestNeeds() const override { return Needs::kNewest; }
  double Flops(bool) const override { return 20 * static_cast<double>(ComputedColumns()); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    normalization_->Forward(pass, *inputs.front(), output);
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    normalization_->Backward(pass, *inputs.front(), *d_output, gradients, d_inputs.front());
  }

 private:
  std::unique_ptr<Normalization> normalization_;
};

}  // namespace

std::unique_ptr<Block> MakeNormalizationBlock(const BlockPlace& place,
                                              std::unique_ptr<Normalization> normalization,
                                              std::optional<SequenceId> sequence) {
  return std::make_unique<NormalizationBlock>(place, std::move(normalization), sequence);
}

const std::vector<std::string>& NormalizationNames() {
  static const std::vector<std::string> names = {"none", "batch", "layer"};
  return names;
}

std::unique_ptr<Normalization> MakeNormalization(const std::string& name, const BlockPlace& place,
                                                 const std::string& prefix, int64_t units) {
  if (name == "none") return nullptr;
  if (name == "batch")
    return std::make_unique<BatchNormalization>(BatchNorm{}, place, prefix, units);
  CHECK(name == "layer");
  if (units < 2) place.Reject("normalizes each layer by itself (layer), but one has a single unit");
  return std::make_unique<LayerNormalization>(LayerNorm{}, place, prefix, units, units);
}

}  // namespace renzan
