#include "renzan/model/blocks/zeros.h"

#include <algorithm>

#include "renzan/base/config/config.h"

namespace renzan {
namespace {

class ZerosBlock final : public Block {
 public:
  ZerosBlock(int64_t dim, const BlockPlace& place) : Block({{place.name, dim}}) {
    if (!place.inputs.empty()) place.Reject("takes no inputs");
  }

  double Flops(bool) const override { return 0; }
  void Forward(const BlockPass&, Inputs, BlockedMatrix* output) const override {
    std::fill_n(output->data(), output->size(), 0.0f);
  }
  void Backward(const BlockPass&, Inputs, const BlockedMatrix&, BlockedMatrix*, WeightGradients*,
                std::span<BlockedMatrix* const>) const override {}
};

}  // namespace

void Zeros::Describe(ConfigFields& fields) {
  fields.Range("dim", &dim, 1, kMaxWidth);
  fields.Require(dim > 0, "dim", "is missing: say how many columns");
}

std::unique_ptr<Block> Zeros::Make(const BlockPlace& place) const {
  return std::make_unique<ZerosBlock>(dim, place);
}

}  // namespace renzan
