#include "renzan/model/blocks/per_vector.h"

#include <utility>

#include "renzan/base/error.h"
#include "renzan/model/blocks/sequence.h"

namespace renzan {
namespace {

Shape WithWidth(Shape shape, int64_t width) {
  for (FeatureVector& vector : shape) vector.dim = width;
  return shape;
}

class PerVectorBlock final : public Block {
 public:
  // `block` was made for one vector.
  PerVectorBlock(const BlockPlace& place, const SequenceInputOf& input,
                 std::unique_ptr<Block> block)
      : Block(WithWidth(place.input(), ColumnsOf(block->shape())), input.sequence()),
        input_(input),
        block_(std::move(block)),
        width_(ColumnsOf(block_->shape())),
        x_(place.buffers.AddRows(input_.dim(), input_.positions())),
        y_(place.buffers.AddRows(width_, input_.positions())),
        d_y_(place.buffers.AddRows(width_, input_.positions())) {
    if (place.d_inputs) d_x_ = place.buffers.AddRows(input_.dim(), input_.positions());
  }

  double Flops(bool d_inputs) const override {
    return static_cast<double>(input_.positions()) * block_->Flops(d_inputs);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    ToRows(*inputs.front(), input_.dim(), &pass.buffers[x_]);
    const BlockedMatrix* const x = &pass.buffers[x_];
    block_->Forward(OfRows(pass), {&x, 1}, &pass.buffers[y_]);
    FromRows(pass.buffers[y_], width_, output);
    input_.ZeroUnused(pass, output);
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    input_.ZeroUnused(pass, d_output);
    ToRows(*d_output, width_, &pass.buffers[d_y_]);
    const BlockedMatrix* const x = &pass.buffers[x_];
    BlockedMatrix* const d_x = d_inputs.front() == nullptr ? nullptr : &pass.buffers[d_x_];
    block_->Backward(OfRows(pass), {&x, 1}, pass.buffers[y_], &pass.buffers[d_y_], gradients,
                     {&d_x, 1});
    if (d_x != nullptr) FromRows(*d_x, input_.dim(), d_inputs.front());
  }

 private:
  void ToRows(const BlockedMatrix& from, int64_t dim, BlockedMatrix* to) const {
    for (int64_t r = 0; r < to->rows(); ++r)
      to->CopyRow(r, 0, from, r / input_.positions(), r % input_.positions() * dim, dim);
  }
  void FromRows(const BlockedMatrix& from, int64_t dim, BlockedMatrix* to) const {
    for (int64_t r = 0; r < from.rows(); ++r)
      to->CopyRow(r / input_.positions(), r % input_.positions() * dim, from, r, 0, dim);
  }
  // Dropout takes the vectors for samples.
  BlockPass OfRows(const BlockPass& pass) const {
    BlockPass of_rows = pass;
    if (of_rows.training) of_rows.training->first_sample *= input_.positions();
    return of_rows;
  }

  SequenceInputOf input_;
  std::unique_ptr<Block> block_;
  int64_t width_;                 // of the block's output
  size_t x_, y_, d_y_, d_x_ = 0;  // buffers with a row for each vector
};

}  // namespace

std::unique_ptr<Block> MakePerVector(
    const BlockPlace& place,
    const std::function<std::unique_ptr<Block>(const BlockPlace& of_one)>& make) {
  place.positions();
  const SequenceInputOf input(place, 0);
  const Shape one = {{place.name, input.dim()}};
  place.buffers.set_rows_factor(input.positions());
  place.parameters.set_rows_factor(input.positions());
  std::unique_ptr<Block> block = make({.name = place.name,
                                       .inputs = {&one, 1},
                                       .d_inputs = place.d_inputs,
                                       .seed = place.seed,
                                       .parameters = place.parameters,
                                       .buffers = place.buffers});
  place.buffers.set_rows_factor(1);
  place.parameters.set_rows_factor(1);
  CHECK(block->shape().size() == 1);
  return std::make_unique<PerVectorBlock>(place, input, std::move(block));
}

}  // namespace renzan
