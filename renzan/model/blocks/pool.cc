#include "renzan/model/blocks/pool.h"

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/sequence.h"

namespace renzan {
namespace {

class PoolBlock final : public Block {
 public:
  PoolBlock(const std::string& method, const BlockPlace& place)
      : Block({{place.name, place.DimOfAll()}}),
        input_(place, 0),
        is_mean_(method == "mean"),
        is_last_(method == "last"),
        row_(place.buffers.AddRow(input_.columns() + input_.dim())) {}

  VectorLayout TakesAs(size_t) const override {
    return is_last_ ? VectorLayout::kNewest : VectorLayout::kRows;
  }
  double Flops(bool) const override {
    return 2 * static_cast<double>(is_last_ ? input_.dim() : input_.columns());
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("pool");
    float* const x = pass.rows[row_].data();
    float* const sum = x + input_.columns();
    for (int64_t i = 0, row = 0; i < output->rows(); ++i) {
      const Range range = RangeOf(pass, i);
      input_.Get(*inputs.front(), i, row, range.given, x);
      std::fill_n(sum, input_.dim(), 0.0f);
      for (int64_t v = range.first; v < range.given; ++v)
        for (int64_t d = 0; d < input_.dim(); ++d) sum[d] += x[v * input_.dim() + d];
      for (int64_t d = 0; d < input_.dim(); ++d) sum[d] *= range.scale;
      output->SetRow(i, 0, sum, input_.dim());
      row += range.given;
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix& output, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("pool");
    if (d_inputs.front() == nullptr) return;
    float* const dx = pass.rows[row_].data();
    float* const d = dx + input_.columns();
    for (int64_t i = 0, row = 0; i < output.rows(); ++i) {
      d_output->GetRow(i, 0, d, input_.dim());
      const Range range = RangeOf(pass, i);
      std::fill_n(dx, range.given * input_.dim(), 0.0f);
      for (int64_t v = range.first; v < range.given; ++v)
        for (int64_t c = 0; c < input_.dim(); ++c) dx[v * input_.dim() + c] = d[c] * range.scale;
      input_.Set(dx, i, row, range.given, d_inputs.front());
      row += range.given;
    }
  }

 private:
  // Of a sample's vectors: those that are in the input's matrix, and the first one to pool.
  struct Range {
    int64_t first, given;
    float scale;
  };
  Range RangeOf(const BlockPass& pass, int64_t sample) const {
    const int64_t length = input_.LengthOf(pass, sample);
    const bool newest_alone = is_last_ && input_.sequence();
    const int64_t given = newest_alone ? std::min<int64_t>(length, 1) : length;
    return {.first = is_last_ ? std::max<int64_t>(given - 1, 0) : 0,
            .given = given,
            .scale = is_mean_ && length > 1 ? 1 / static_cast<float>(length) : 1};
  }

  SequenceInputOf input_;
  bool is_mean_, is_last_;
  size_t row_;  // of a sample, and the sum of its vectors
};

}  // namespace

void Pool::Describe(ConfigFields& fields) {
  fields.Choice("method", &method, {"sum", "mean", "last"});
}

std::unique_ptr<Block> Pool::Make(const BlockPlace& place) const {
  place.positions();
  return std::make_unique<PoolBlock>(method, place);
}

}  // namespace renzan
