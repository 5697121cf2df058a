#include "renzan/model/blocks/per_vector.h"

#include <algorithm>
#include <utility>
#include <vector>

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
  PerVectorBlock(const BlockPlace& place, const SequenceInputOf& input, size_t first_buffer,
                 std::unique_ptr<Block> block)
      : Block(WithWidth(place.input(), ColumnsOf(block->shape())), input.sequence()),
        input_(input),
        block_(std::move(block)),
        width_(ColumnsOf(block_->shape())),
        first_buffer_(first_buffer),
        end_buffer_(place.buffers.size()) {
    if (sequence()) return;  // whose positions are rows already
    x_ = place.buffers.AddRows(input_.dim(), input_.positions());
    y_ = place.buffers.AddRows(width_, input_.positions());
    d_y_ = place.buffers.AddRows(width_, input_.positions());
    if (place.d_inputs) d_x_ = place.buffers.AddRows(input_.dim(), input_.positions());
  }

  Needs NewestNeeds() const override { return Needs::kNewest; }
  double Flops(bool d_inputs) const override {
    return static_cast<double>(only_newest() ? 1 : input_.positions()) * block_->Flops(d_inputs);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    if (sequence()) {
      for (size_t b = first_buffer_; b < end_buffer_; ++b) {
        BlockedMatrix& buffer = pass.buffers[b];
        buffer.Reshape(output->rows(), buffer.columns(), buffer.precision());
      }
      return block_->Forward(OfRows(pass), inputs, output);
    }
    ToRows(*inputs.front(), input_.dim(), &pass.buffers[x_]);
    const BlockedMatrix* const x = &pass.buffers[x_];
    block_->Forward(OfRows(pass), {&x, 1}, &pass.buffers[y_]);
    FromRows(pass.buffers[y_], width_, output);
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    if (sequence())
      return block_->Backward(OfRows(pass), inputs, output, d_output, gradients, d_inputs);
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
  // Dropout takes the vectors for samples: those of the positions that no sample uses count.
  BlockPass OfRows(const BlockPass& pass) const {
    BlockPass of_rows = pass;
    if (!of_rows.training) return of_rows;
    of_rows.training->first_sample *= input_.positions();
    if (!sequence()) return of_rows;
    thread_local std::vector<int32_t> numbers;
    numbers.clear();
    for (int64_t i = 0; i < std::ssize(pass.lengths[sequence()->index]); ++i) {
      const int64_t length = input_.LengthOf(pass, i);
      for (int64_t v = only_newest() ? std::max<int64_t>(length - 1, 0) : 0; v < length; ++v)
        numbers.push_back(static_cast<int32_t>(i * input_.positions() + v));
    }
    of_rows.training->samples = numbers;
    return of_rows;
  }

  SequenceInputOf input_;
  std::unique_ptr<Block> block_;
  int64_t width_;                     // of the block's output
  size_t first_buffer_, end_buffer_;  // of the block
  // Buffers with a row for each vector, of what is no sequence.
  size_t x_ = 0, y_ = 0, d_y_ = 0, d_x_ = 0;
};

}  // namespace

std::unique_ptr<Block> MakePerVector(
    const BlockPlace& place,
    const std::function<std::unique_ptr<Block>(const BlockPlace& of_one)>& make) {
  place.positions();
  const SequenceInputOf input(place, 0);
  const Shape one = {{place.name, input.dim()}};
  const size_t first_buffer = place.buffers.size();
  place.buffers.set_rows_factor(input.positions());
  place.parameters.set_rows_factor(input.positions());
  std::unique_ptr<Block> block = make({.name = place.name,
                                       .where = place.where,
                                       .inputs = {&one, 1},
                                       .d_inputs = place.d_inputs,
                                       .seed = place.seed,
                                       .parameters = place.parameters,
                                       .buffers = place.buffers});
  place.buffers.set_rows_factor(1);
  place.parameters.set_rows_factor(1);
  CHECK(block->shape().size() == 1);
  return std::make_unique<PerVectorBlock>(place, input, first_buffer, std::move(block));
}

}  // namespace renzan
