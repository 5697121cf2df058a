#include "renzan/model/blocks/positions.h"

#include <algorithm>

#include "renzan/base/trace.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/elementwise.h"

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
    const int64_t samples = pass.buffers[d_weight_].rows();
    for (int64_t i = 0, row = 0; i < samples; ++i) {
      const int64_t used = input_.LengthOf(pass, i), n = used * input_.dim();
      const float* const weight = pass.parameters.vector(weight_) + input_.columns() - n;
      input_.Get(*inputs.front(), i, row, used, x);
      for (int64_t c = 0; c < n; ++c) x[c] += weight[c];
      input_.Set(x, i, row, used, output);
      row += used;
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("positions");
    BlockedMatrix& d_weights = pass.buffers[d_weight_];
    float* const d = pass.rows[row_].data();
    for (int64_t i = 0, row = 0; i < d_weights.rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i);
      const int64_t rest = input_.columns() - used * input_.dim();
      std::fill_n(d, rest, 0.0f);
      input_.Get(*d_output, i, row, used, d + rest);
      d_weights.SetRow(i, 0, d, input_.columns());
      row += used;
    }
    gradients->AddVector(d_weights, weight_);
    if (d_inputs.front() != nullptr) Copy(*d_output, d_inputs.front());
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
