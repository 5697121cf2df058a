#include "renzan/model/blocks/concat.h"

#include <numeric>

namespace renzan {
namespace {

Shape AllVectors(const BlockPlace& place) {
  if (place.inputs.empty()) place.Reject("takes at least one input");
  Shape all;
  for (const Shape& input : place.inputs) all.insert(all.end(), input.begin(), input.end());
  return all;
}

class ConcatBlock final : public Block {
 public:
  explicit ConcatBlock(const BlockPlace& place) : Block(AllVectors(place)) {
    for (const Shape& input : place.inputs) columns_.push_back(ColumnsOf(input));
  }

  double Flops(bool) const override { return 0; }
  std::optional<int64_t> ColumnOf(size_t input) const override {
    return std::accumulate(columns_.begin(), columns_.begin() + static_cast<ptrdiff_t>(input),
                           int64_t{0});
  }

  // The graph may have placed an input where the output has it.
  void Forward(const BlockPass&, Inputs inputs, BlockedMatrix* output) const override {
    int64_t column = 0;
    for (size_t i = 0; i < columns_.size(); column += columns_[i++])
      if (inputs[i] != output) output->SetColumns(column, *inputs[i], 0, columns_[i]);
  }

  void Backward(const BlockPass&, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients*, std::span<BlockedMatrix* const> d_inputs) const override {
    int64_t column = 0;
    for (size_t i = 0; i < columns_.size(); column += columns_[i++])
      if (d_inputs[i] != nullptr && d_inputs[i] != d_output)
        d_inputs[i]->SetColumns(0, *d_output, column, columns_[i]);
  }

 private:
  std::vector<int64_t> columns_;  // of each input
};

}  // namespace

std::unique_ptr<Block> Concat::Make(const BlockPlace& place) const {
  return std::make_unique<ConcatBlock>(place);
}

}  // namespace renzan
