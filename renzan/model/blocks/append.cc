#include "renzan/model/blocks/append.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/model/blocks/sequence.h"

namespace renzan {
namespace {

constexpr size_t kSequence = 0, kLast = 1;  // inputs

Shape WithOneMore(const BlockPlace& place) {
  Shape shape = place.inputs[kSequence];
  const int64_t dim = place.DimOfAll(kSequence);
  if (ColumnsOf(place.inputs[kLast]) != dim)
    place.Reject(fmt::format("appends {} to {}: they must have one width",
                             Describe(place.inputs[kLast]), Describe(shape)));
  shape.push_back({fmt::format("{}.{}", place.name, shape.size()), dim});
  return shape;
}

std::optional<SequenceId> LongerBy1(std::optional<SequenceId> sequence) {
  if (sequence) ++sequence->appended;
  return sequence;
}

class AppendBlock final : public Block {
 public:
  explicit AppendBlock(const BlockPlace& place)
      : Block(WithOneMore(place), LongerBy1(place.SequenceOf(kSequence))),
        sequence_(place, kSequence),
        row_(place.buffers.AddRow(sequence_.columns() + sequence_.dim())) {}

  double Flops(bool) const override { return 0; }
  VectorLayout TakesAs(size_t input) const override {
    return input == kSequence ? GivesAs() : VectorLayout::kColumns;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    float* const x = pass.rows[row_].data();
    for (int64_t i = 0, row = 0; i < inputs[kLast]->rows(); ++i) {
      const int64_t used = sequence_.LengthOf(pass, i);
      sequence_.Get(*inputs[kSequence], i, row, used, x);
      inputs[kLast]->GetRow(i, 0, x + used * sequence_.dim(), sequence_.dim());
      // Before this sample come as many more rows as samples.
      sequence_.Set(x, i, row + i, used + 1, output);
      row += used;
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    float* const d = pass.rows[row_].data();
    for (int64_t i = 0, row = 0; i < inputs[kLast]->rows(); ++i) {
      const int64_t used = sequence_.LengthOf(pass, i);
      sequence_.Get(*d_output, i, row + i, used + 1, d);
      if (d_inputs[kLast] != nullptr)
        d_inputs[kLast]->SetRow(i, 0, d + used * sequence_.dim(), sequence_.dim());
      if (d_inputs[kSequence] != nullptr) sequence_.Set(d, i, row, used, d_inputs[kSequence]);
      row += used;
    }
  }

 private:
  SequenceInputOf sequence_;
  size_t row_;  // of a sample's output
};

}  // namespace

std::unique_ptr<Block> Append::Make(const BlockPlace& place) const {
  if (place.inputs.size() != 2)
    place.Reject(fmt::format("takes a sequence and a vector, but has {}",
                             Counted(place.inputs.size(), "input")));
  return std::make_unique<AppendBlock>(place);
}

}  // namespace renzan
