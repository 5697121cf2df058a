#include "renzan/model/blocks/dot.h"

#include "renzan/base/trace.h"
#include "renzan/model/dot_interaction.h"

namespace renzan {
namespace {

Shape PairsOf(const BlockPlace& place) {
  const int64_t dim = place.DimOfAll();
  return {{place.name, DotInteractionWidth(std::ssize(place.input()), dim)}};
}

class DotBlock final : public Block {
 public:
  explicit DotBlock(const BlockPlace& place)
      : Block(PairsOf(place)),
        vectors_(std::ssize(place.input())),
        dim_(place.input().front().dim) {}

  double Flops(bool) const override {
    // Forward, one product for each pair of vectors; backward, each vector gets a multiple of every
    // other one.
    const double f = static_cast<double>(vectors_);
    return 3 * f * (f - 1) * static_cast<double>(dim_);
  }

  void Forward(const BlockPass&, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("dot interaction");
    DotInteractionForward(*inputs.front(), vectors_, dim_, output);
  }

  void Backward(const BlockPass&, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("dot interaction");
    if (d_inputs.front() == nullptr) return;
    DotInteractionBackward(*inputs.front(), *d_output, vectors_, dim_, d_inputs.front());
  }

 private:
  int64_t vectors_, dim_;
};

}  // namespace

std::unique_ptr<Block> Dot::Make(const BlockPlace& place) const {
  return std::make_unique<DotBlock>(place);
}

}  // namespace renzan
