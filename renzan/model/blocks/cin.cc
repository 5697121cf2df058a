#include "renzan/model/blocks/cin.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

// Each column of the dimension is a row of the matrices: [n · dim, vectors or maps]. A layer is a
// product of its weight and the products of all pairs, which are computed again in the backward
// pass, because keeping them for all layers would take much memory.
class CinBlock final : public Block {
 public:
  CinBlock(const std::vector<int64_t>& layers, const BlockPlace& place)
      : Block({{place.name, std::accumulate(layers.begin(), layers.end(), int64_t{0})}}),
        dim_(place.DimOfAll()),
        vectors_(std::ssize(place.input())) {
    BufferLayout& buffers = place.buffers;
    x0_ = buffers.AddRows(vectors_, dim_);
    d_x0_ = buffers.Add(vectors_, Precision::kFloat32, dim_);
    int64_t before = vectors_, column = 0, most = 0, widest = vectors_;
    for (const int64_t maps : layers) {
      const int64_t pairs = before * vectors_;
      layers_.push_back(
          {.maps = maps,
           .before = before,
           .column = column,
           .weight = place.parameters.Add(fmt::format("{}.{}.weight", place.name, layers_.size()),
                                          {maps, pairs}, Initializer::kXavierNormal, dim_),
           .output = buffers.AddRows(maps, dim_)});
      most = std::max(most, pairs);
      widest = std::max(widest, maps);
      column += maps;
      before = maps;
    }
    pairs_ = buffers.AddRows(most, dim_);
    d_pairs_ = buffers.AddRows(most, dim_);
    d_maps_ = buffers.AddRows(widest, dim_);
    input_row_ = buffers.AddRow(vectors_ * dim_);
    x0_row_ = buffers.AddRow(vectors_);
    d_x0_row_ = buffers.AddRow(vectors_);
    maps_row_ = buffers.AddRow(widest);
    d_maps_row_ = buffers.AddRow(widest);
    sums_row_ = buffers.AddRow(widest);
    pairs_row_ = buffers.AddRow(most);
  }

  double Flops(bool d_inputs) const override {
    // Per pair: its product forward and again backward, and both gradients of it.
    double flops = 0;
    for (const Layer& layer : layers_) {
      const bool passed_on = d_inputs || &layer != &layers_.front();
      flops += static_cast<double>(layer.before * vectors_ * dim_) *
               ((passed_on ? 6.0 : 4.0) * static_cast<double>(layer.maps) + (passed_on ? 6 : 2));
    }
    return flops;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("cin");
    Transpose(pass, *inputs.front());
    for (const Layer& layer : layers_) {
      SetPairs(pass, layer);
      Gemm(pass.buffers[pairs_], pass.parameters.weight(layer.weight).transposed, {},
           &pass.buffers[layer.output]);
      SumMaps(pass, layer, output);
    }
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("cin");
    BlockedMatrix &d_maps = pass.buffers[d_maps_], &d_pairs = pass.buffers[d_pairs_];
    BlockedMatrix &d_x0 = pass.buffers[d_x0_], &pairs = pass.buffers[pairs_];
    std::fill_n(d_x0.data(), d_x0.size(), 0.0f);
    SetGradientOfLast(pass, *d_output);
    for (size_t k = layers_.size(); k-- > 0;) {
      const Layer& layer = layers_[k];
      SetPairs(pass, layer);
      gradients->Add(d_maps, pairs, layer.weight, std::nullopt);
      if (k == 0 && d_inputs.front() == nullptr) return;
      d_pairs.Reshape(pairs.rows(), pairs.columns(), pairs.precision());
      Gemm(d_maps, pass.parameters.weight(layer.weight).straight, {}, &d_pairs);
      DifferentiatePairs(pass, layer, *d_output);
    }
    SetGradientOfInput(pass, d_inputs.front());
  }

 private:
  struct Layer {
    int64_t maps, before;  // its own, and those of the layer before it (or vectors)
    int64_t column;        // of its first sum in the block's output
    int64_t weight;        // offset of the parameter
    size_t output;         // buffer
  };

  // What a layer multiplies with X^0.
  const BlockedMatrix& InputOf(const BlockPass& pass, const Layer& layer) const {
    return pass.buffers[&layer == &layers_.front() ? x0_ : (&layer - 1)->output];
  }

  void Transpose(const BlockPass& pass, const BlockedMatrix& input) const {
    float* const x = pass.rows[input_row_].data();
    float* const column = pass.rows[x0_row_].data();
    for (int64_t i = 0; i < input.rows(); ++i) {
      input.GetRow(i, 0, x, vectors_ * dim_);
      for (int64_t d = 0; d < dim_; ++d) {
        for (int64_t j = 0; j < vectors_; ++j) column[j] = x[j * dim_ + d];
        pass.buffers[x0_].SetRow(i * dim_ + d, 0, column, vectors_);
      }
    }
  }

  void SetGradientOfInput(const BlockPass& pass, BlockedMatrix* d_input) const {
    float* const d_x = pass.rows[input_row_].data();
    float* const column = pass.rows[x0_row_].data();
    for (int64_t i = 0; i < d_input->rows(); ++i) {
      for (int64_t d = 0; d < dim_; ++d) {
        pass.buffers[d_x0_].GetRow(i * dim_ + d, 0, column, vectors_);
        for (int64_t j = 0; j < vectors_; ++j) d_x[j * dim_ + d] = column[j];
      }
      d_input->SetRow(i, 0, d_x, vectors_ * dim_);
    }
  }

  void SetPairs(const BlockPass& pass, const Layer& layer) const {
    const BlockedMatrix &x0 = pass.buffers[x0_], &in = InputOf(pass, layer);
    BlockedMatrix& pairs = pass.buffers[pairs_];
    pairs.Reshape(x0.rows(), layer.before * vectors_, x0.precision());
    float* const y = pass.rows[x0_row_].data();
    float* const x = pass.rows[maps_row_].data();
    float* const products = pass.rows[pairs_row_].data();
    for (int64_t row = 0; row < x0.rows(); ++row) {
      x0.GetRow(row, 0, y, vectors_);
      in.GetRow(row, 0, x, layer.before);
      for (int64_t i = 0; i < layer.before; ++i)
        for (int64_t j = 0; j < vectors_; ++j) products[i * vectors_ + j] = x[i] * y[j];
      pairs.SetRow(row, 0, products, layer.before * vectors_);
    }
  }

  void SumMaps(const BlockPass& pass, const Layer& layer, BlockedMatrix* output) const {
    float* const maps = pass.rows[maps_row_].data();
    float* const sums = pass.rows[sums_row_].data();
    for (int64_t i = 0; i < output->rows(); ++i) {
      std::fill_n(sums, layer.maps, 0.0f);
      for (int64_t d = 0; d < dim_; ++d) {
        pass.buffers[layer.output].GetRow(i * dim_ + d, 0, maps, layer.maps);
        for (int64_t h = 0; h < layer.maps; ++h) sums[h] += maps[h];
      }
      output->SetRow(i, layer.column, sums, layer.maps);
    }
  }

  // Only its sums use the last layer's maps.
  void SetGradientOfLast(const BlockPass& pass, const BlockedMatrix& d_output) const {
    const Layer& last = layers_.back();
    BlockedMatrix& d_maps = pass.buffers[d_maps_];
    d_maps.Reshape(pass.buffers[x0_].rows(), last.maps, d_maps.precision());
    for (int64_t row = 0; row < d_maps.rows(); ++row)
      d_maps.CopyRow(row, 0, d_output, row / dim_, last.column, last.maps);
  }

  // From the gradient of the pairs, adds to that of X^0 and sets that of the maps of the layer
  // before, if there is one.
  void DifferentiatePairs(const BlockPass& pass, const Layer& layer,
                          const BlockedMatrix& d_output) const {
    const BlockedMatrix &x0 = pass.buffers[x0_], &in = InputOf(pass, layer);
    BlockedMatrix &d_x0 = pass.buffers[d_x0_], &d_maps = pass.buffers[d_maps_];
    float* const y = pass.rows[x0_row_].data();
    float* const d_y = pass.rows[d_x0_row_].data();
    float* const x = pass.rows[maps_row_].data();
    float* const d_x = pass.rows[d_maps_row_].data();
    float* const d_pairs = pass.rows[pairs_row_].data();
    const bool first = &layer == &layers_.front();
    if (!first) d_maps.Reshape(x0.rows(), layer.before, d_maps.precision());
    for (int64_t row = 0; row < x0.rows(); ++row) {
      x0.GetRow(row, 0, y, vectors_);
      in.GetRow(row, 0, x, layer.before);
      d_x0.GetRow(row, 0, d_y, vectors_);
      pass.buffers[d_pairs_].GetRow(row, 0, d_pairs, layer.before * vectors_);
      if (first) {
        std::fill_n(d_x, layer.before, 0.0f);
      } else {
        d_output.GetRow(row / dim_, (&layer - 1)->column, d_x, layer.before);
      }
      for (int64_t i = 0; i < layer.before; ++i)
        for (int64_t j = 0; j < vectors_; ++j) {
          const float d = d_pairs[i * vectors_ + j];
          d_x[i] += d * y[j];
          d_y[j] += d * x[i];
        }
      if (first) {
        for (int64_t j = 0; j < vectors_; ++j) d_y[j] += d_x[j];
      } else {
        d_maps.SetRow(row, 0, d_x, layer.before);
      }
      d_x0.SetRow(row, 0, d_y, vectors_);
    }
  }

  int64_t dim_, vectors_;
  std::vector<Layer> layers_;
  // Buffers: X^0 and its gradient, pairs of one layer and their gradient, the gradient of its maps.
  size_t x0_, d_x0_, pairs_, d_pairs_, d_maps_;
  size_t input_row_, x0_row_, d_x0_row_, maps_row_, d_maps_row_, sums_row_, pairs_row_;
};

}  // namespace

void Cin::Describe(ConfigFields& fields) {
  fields.Field("layers", &layers, "their numbers of feature maps");
  fields.Require(
      !layers.empty() && std::all_of(layers.begin(), layers.end(),
                                     [](int64_t maps) { return maps >= 1 && maps <= kMaxWidth; }),
      "layers", "there must be at least one, of 1 to 1048576 feature maps each");
}

std::unique_ptr<Block> Cin::Make(const BlockPlace& place) const {
  CHECK(!layers.empty());
  return std::make_unique<CinBlock>(layers, place);
}

}  // namespace renzan
