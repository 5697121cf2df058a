#pragma once

// A block alone, with random parameters and inputs, for tests of its values and gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/base/thread_pool.h"
#include "renzan/model/blocks/block.h"
#include "renzan/model/blocks/convert_sequence.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/testing.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {

class BlockAlone {
 public:
  BlockAlone(const BlockOptions& options, std::vector<Shape> shapes, int64_t n = 4,
             std::optional<TrainingPosition> training = std::nullopt,
             Precision precision = Precision::kFloat32, bool sequences = true)
      : shapes_(std::move(shapes)),
        n_(n),
        training_(training),
        precision_(precision),
        buffers_(precision) {
    const std::string name = "block";
    // Every input of several vectors of one dimension is the same sequence, all of whose positions
    // are used until SetLengths(), unless there are to be no sequences.
    for (const Shape& shape : shapes_) {
      const bool is_sequence = sequences && shape.size() > 1 &&
                               std::all_of(shape.begin(), shape.end(), [&](const FeatureVector& v) {
                                 return v.dim == shape.front().dim;
                               });
      sequences_.push_back(is_sequence ? std::optional<SequenceId>(SequenceId{}) : std::nullopt);
      if (is_sequence)
        lengths_.assign(
            1, std::vector<int32_t>(static_cast<size_t>(n), static_cast<int32_t>(shape.size())));
    }
    block_ = options.Make({.name = name,
                           .inputs = shapes_,
                           .sequences = sequences_,
                           .parameters = layout_,
                           .buffers = buffers_,
                           .items = &requests_});
    parameters_ = AlignedBuffer(static_cast<size_t>(layout_.size()));
    const std::vector<float> values = RandomValues(parameters_.size(), 3);
    std::copy(values.begin(), values.end(), parameters_.data());
    for (const Shape& shape : shapes_)
      inputs.push_back(RandomValues(static_cast<size_t>(n * ColumnsOf(shape)), 4 + inputs.size()));
    matrices_ = buffers_.Make(n);
    rows_ = buffers_.MakeRows();
    output_.Reshape(n, columns(), precision);
  }

  std::vector<std::vector<float>> inputs;  // [n, columns], row by row
  std::vector<SampleItems> items;          // for blocks that want ids in training
  std::vector<float> statistics;           // that ExpectGradients() has observed

  // Of each sample, how many positions of its sequence are used; the vectors of the others become
  // zeros.
  void SetLengths(const std::vector<int32_t>& lengths) {
    lengths_[0] = lengths;
    for (size_t input = 0; input < inputs.size(); ++input) {
      if (!sequences_[input]) continue;
      const Shape& shape = shapes_[input];
      const auto width = static_cast<size_t>(ColumnsOf(shape));
      for (size_t i = 0; i < lengths.size(); ++i) {
        const size_t used = width / shape.size() * static_cast<size_t>(lengths[i]);
        std::fill_n(inputs[input].data() + i * width + used, width - used, 0.0f);
      }
    }
  }

  const Block& block() const { return *block_; }
  const ParameterLayout& layout() const { return layout_; }
  int64_t columns() const { return ColumnsOf(block_->shape()); }  // of the output
  std::span<float> parameter(const std::string& name) {
    for (const Parameter& each : layout_.parameters())
      if (each.name == "block." + name) return Of(each, parameters_);
    ADD_FAILURE() << "there is no parameter " << name;
    return {};
  }

  // From now on the block gives the newest position alone; the others become zeros.
  void GiveOnlyNewest() { block_->GiveOnlyNewest(); }

  // [n, columns], row by row.
  std::vector<float> Output() {
    PackedParameters packed(layout_, parameters_.span(), precision_);
    ThreadPool pool(1);
    packed.Pack(pool);
    const BlockPass pass{packed, matrices_, rows_, training_, lengths_, items};
    Load(pass);
    if (block_->sequence())
      output_.Reshape(RowsOf(*block_->sequence(), block_->GivesAs(), pass, n_),
                      block_->shape().front().dim, precision_);
    block_->Forward(pass, input_pointers_, &output_);
    return RowMajor(
        ToColumns(pass, block_->shape(), block_->sequence(), block_->GivesAs(), output_));
  }

  // After Output(): the gradients of the parameters and of each input, row by row, for a random
  // linear function of the output.
  std::pair<std::vector<float>, std::vector<std::vector<float>>> Gradients() {
    PackedParameters packed(layout_, parameters_.span(), precision_);
    ThreadPool pool(1);
    packed.Pack(pool);
    const BlockPass pass{packed, matrices_, rows_, training_, lengths_, items};
    BlockedMatrix d_output =
        FromColumns(pass, block_->shape(), block_->sequence(), block_->GivesAs(),
                    Blocked(WeightsOfLoss(), n_, columns(), precision_));
    std::vector<BlockedMatrix> d_inputs;
    for (const BlockedMatrix& each : loaded_)
      d_inputs.emplace_back(each.rows(), each.columns(), precision_);
    std::vector<BlockedMatrix*> pointers;
    for (BlockedMatrix& each : d_inputs) pointers.push_back(&each);
    AlignedBuffer gradients(parameters_.size());
    FlatGradients flat(gradients.data());
    statistics.assign(static_cast<size_t>(layout_.statistics_size()), 0.0f);
    flat.set_statistics(statistics.data());
    block_->Backward(pass, input_pointers_, output_, &d_output, &flat, pointers);
    std::vector<std::vector<float>> of_inputs;
    for (size_t i = 0; i < d_inputs.size(); ++i)
      of_inputs.push_back(
          RowMajor(ToColumns(pass, shapes_[i], sequences_[i], block_->TakesAs(i), d_inputs[i])));
    return {{gradients.data(), gradients.data() + gradients.size()}, std::move(of_inputs)};
  }

  // Compares all gradients with finite differences of a random linear function of the output, but
  // those of parameters that cannot change the output with 0.
  void ExpectGradients(const std::function<bool(const std::string& parameter)>& is_without_effect =
                           [](const std::string&) { return false; }) {
    const std::vector<float> weights = WeightsOfLoss();
    const auto loss = [&] {
      const std::vector<float> y = Output();
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += double{weights[i]} * double{y[i]};
      return sum;
    };
    loss();
    const auto [gradients, d_inputs] = Gradients();
    for (const Parameter& each : layout_.parameters()) {
      if (each.is_statistic()) continue;
      const std::span<const float> gradient = std::span(gradients).subspan(
          static_cast<size_t>(each.offset), static_cast<size_t>(each.size));
      if (is_without_effect(each.name)) {
        for (const float d : gradient) EXPECT_NEAR(d, 0, 1e-5) << each.name;
        continue;
      }
      EXPECT_LT(GradientError(Of(each, parameters_), gradient, loss), 2e-3) << each.name;
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_LT(GradientError(inputs[i], d_inputs[i], loss), 2e-3) << "input " << i;
  }

 private:
  static std::span<float> Of(const Parameter& parameter, AlignedBuffer& values) {
    return values.span().subspan(static_cast<size_t>(parameter.offset),
                                 static_cast<size_t>(parameter.size));
  }
  std::vector<float> WeightsOfLoss() const {
    return RandomValues(static_cast<size_t>(n_ * columns()), 9);
  }
  void Load(const BlockPass& pass) {
    loaded_.clear();
    input_pointers_.clear();
    for (size_t i = 0; i < inputs.size(); ++i)
      loaded_.push_back(FromColumns(pass, shapes_[i], sequences_[i], block_->TakesAs(i),
                                    Blocked(inputs[i], n_, ColumnsOf(shapes_[i]), precision_)));
    for (const BlockedMatrix& each : loaded_) input_pointers_.push_back(&each);
  }

  // A value [n, columns] in the layout in which the block takes or gives it, and back.
  BlockedMatrix FromColumns(const BlockPass& pass, const Shape& shape,
                            const std::optional<SequenceId>& sequence, VectorLayout layout,
                            BlockedMatrix value) const {
    if (!sequence || layout == VectorLayout::kColumns) return value;
    BlockedMatrix rows(RowsOf(*sequence, layout, pass, n_), shape.front().dim, precision_);
    const BlockedMatrix* const input = &value;
    MakeConvertSequence(shape, *sequence, VectorLayout::kColumns, layout)
        ->Forward(pass, {&input, 1}, &rows);
    return rows;
  }
  BlockedMatrix ToColumns(const BlockPass& pass, const Shape& shape,
                          const std::optional<SequenceId>& sequence, VectorLayout layout,
                          BlockedMatrix value) const {
    if (!sequence || layout == VectorLayout::kColumns) return value;
    BlockedMatrix columns(n_, ColumnsOf(shape), precision_);
    BlockedMatrix* const to = &columns;
    MakeConvertSequence(shape, *sequence, VectorLayout::kColumns, layout)
        ->Backward(pass, {}, {}, &value, nullptr, {&to, 1});
    return columns;
  }

  std::vector<Shape> shapes_;
  std::vector<std::optional<SequenceId>> sequences_;
  std::vector<std::vector<int32_t>> lengths_;
  int64_t n_;
  std::optional<TrainingPosition> training_;
  Precision precision_;
  ParameterLayout layout_;
  BufferLayout buffers_;
  std::vector<ItemRequest> requests_;
  std::unique_ptr<Block> block_;
  AlignedBuffer parameters_;
  std::vector<BlockedMatrix> matrices_, loaded_;
  std::vector<AlignedBuffer> rows_;
  std::vector<const BlockedMatrix*> input_pointers_;
  BlockedMatrix output_;
};

// In bfloat16, a block gives what it gives in float32 and the same gradients, up to the rounding of
// 2^-9 of each value.
inline void ExpectBFloat16(const BlockOptions& options, const std::vector<Shape>& shapes,
                           const std::vector<int32_t>& lengths = {}) {
  std::vector<float> results[2];
  for (const bool rounded : {false, true}) {
    BlockAlone block(options, shapes, 4, std::nullopt,
                     rounded ? Precision::kBFloat16 : Precision::kFloat32);
    if (!lengths.empty()) block.SetLengths(lengths);
    std::vector<float>& all = results[rounded];
    all = block.Output();
    const auto [parameters, inputs] = block.Gradients();
    all.insert(all.end(), parameters.begin(), parameters.end());
    for (const std::vector<float>& each : inputs) all.insert(all.end(), each.begin(), each.end());
  }
  double error = 0, size = 0;
  for (size_t i = 0; i < results[0].size(); ++i) {
    error += std::pow(double{results[0][i]} - double{results[1][i]}, 2);
    size += std::pow(double{results[0][i]}, 2);
  }
  EXPECT_LT(std::sqrt(error / size), 0.02);
  EXPECT_GT(std::sqrt(error / size), 0.0002);
}

// Why a block is refused for inputs of these shapes; "" if it is not.
inline std::string Refusal(const BlockOptions& options, const std::vector<Shape>& shapes) {
  try {
    BlockAlone(options, shapes);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
}

}  // namespace renzan
