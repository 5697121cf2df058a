#include "renzan/model/blocks/convert_sequence.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/sequence.h"

namespace renzan {
namespace {

class ConvertSequenceBlock final : public Block {
 public:
  ConvertSequenceBlock(const Shape& shape, const SequenceId& sequence, VectorLayout from,
                       VectorLayout to)
      : Block(shape, to == VectorLayout::kColumns ? std::nullopt : std::optional(sequence)),
        id_(sequence),
        from_(from),
        to_(to),
        dim_(shape.front().dim) {
    CHECK(from != to && from != VectorLayout::kNewest);
    if (to == VectorLayout::kNewest) GiveOnlyNewest();
  }

  VectorLayout TakesAs(size_t) const override { return from_; }
  double Flops(bool) const override { return 0; }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("sequence layout");
    CopyVectors(pass, *inputs.front(), from_, to_, output);
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("sequence layout");
    if (d_inputs.front() != nullptr) CopyVectors(pass, *d_output, to_, from_, d_inputs.front());
  }

 private:
  // The vectors that both have; others of `to` become zeros.
  void CopyVectors(const BlockPass& pass, const BlockedMatrix& from, VectorLayout from_layout,
                   VectorLayout to_layout, BlockedMatrix* to) const {
    const int64_t samples = std::ssize(pass.lengths[id_.index]);
    const bool newest = to_ == VectorLayout::kNewest;
    const bool leaves_others =
        to_layout == VectorLayout::kColumns || (newest && to_layout == VectorLayout::kRows);
    if (leaves_others) std::fill_n(to->data(), to->size(), 0.0f);
    int64_t from_row = 0, to_row = 0;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t used = LengthOf(id_, pass, i);
      for (int64_t v = newest ? std::max<int64_t>(used - 1, 0) : 0; v < used; ++v) {
        const At source = AtOf(from_layout, i, from_row, v), target = AtOf(to_layout, i, to_row, v);
        to->CopyRow(target.row, target.column, from, source.row, source.column, dim_);
      }
      const auto rows = [used](VectorLayout layout) {
        return layout == VectorLayout::kNewest ? std::min<int64_t>(used, 1) : used;
      };
      from_row += rows(from_layout);
      to_row += rows(to_layout);
    }
  }

  struct At {
    int64_t row, column;
  };
  // Where a sample has its vector v; `first`: its first row, if it has rows.
  At AtOf(VectorLayout layout, int64_t sample, int64_t first, int64_t v) const {
    switch (layout) {
      case VectorLayout::kColumns:
        return {sample, v * dim_};
      case VectorLayout::kRows:
        return {first + v, 0};
      case VectorLayout::kNewest:
        return {first, 0};
    }
    return {};
  }

  SequenceId id_;
  VectorLayout from_, to_;
  int64_t dim_;
};

}  // namespace

std::unique_ptr<Block> MakeConvertSequence(const Shape& shape, const SequenceId& sequence,
                                           VectorLayout from, VectorLayout to) {
  return std::make_unique<ConvertSequenceBlock>(shape, sequence, from, to);
}

}  // namespace renzan
