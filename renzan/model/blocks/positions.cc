#include "renzan/model/blocks/positions.h"

#include <algorithm>

#include "renzan/base/trace.h"
#include "renzan/model/blocks/sequence.h"

namespace renzan {
namespace {

class PositionsBlock final : public Block {
 public:
  explicit PositionsBlock(const BlockPlace& place)
      : Block(place.input(), place.SequenceOf(0)),
        input_(place, 0),
        weight_(place.parameters.Add(place.name + ".weight", {input_.columns()},
                                     Initializer::kBiasNormal)),
        d_weight_(place.buffers.Add(input_.columns(), Precision::kFloat32)),
        row_(place.buffers.AddRow(input_.columns())) {}

  double Flops(bool) const override { return 2 * static_cast<double>(input_.columns()); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("positions");
    float* const x = pass.rows[row_].data();
    for (int64_t i = 0; i < output->rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i) * input_.dim();
      const float* const weight = pass.parameters.vector(weight_) + input_.columns() - used;
      inputs.front()->GetRow(i, 0, x, used);
      for (int64_t c = 0; c < used; ++c) x[c] += weight[c];
      std::fill(x + used, x + input_.columns(), 0.0f);
      output->SetRow(i, 0, x, input_.columns());
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix& output, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("positions");
    BlockedMatrix& d_weights = pass.buffers[d_weight_];
    float* const d = pass.rows[row_].data();
    for (int64_t i = 0; i < output.rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i) * input_.dim();
      const int64_t rest = input_.columns() - used;
      std::fill_n(d, rest, 0.0f);
      d_output->GetRow(i, 0, d + rest, used);
      d_weights.SetRow(i, 0, d, input_.columns());
    }
    gradients->AddVector(d_weights, weight_);
    if (d_inputs.front() == nullptr) return;
    input_.ZeroUnused(pass, d_output);
    d_inputs.front()->SetColumns(0, *d_output, 0, input_.columns());
  }

 private:
  SequenceInputOf input_;
  int64_t weight_;   // offset of the parameter
  size_t d_weight_;  // buffer of each sample's part of its gradient
  size_t row_;       // of a sample
};

}  // namespace

std::unique_ptr<Block> Positions::Make(const BlockPlace& place) const {
  place.positions();
  return std::make_unique<PositionsBlock>(place);
}

}  // namespace renzan
