#include "renzan/model/blocks/cin.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/model/pair_products.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

// Rows whose pairs, and the gradients of them, stay in a processor's cache.
constexpr int64_t kRowsAtOnce = 64;

// Each column of the dimension is a row of the matrices: [n · dim, vectors or maps]. A layer is a
// product of its weight and the products of all pairs, which are computed again in the backward
// pass, because keeping them for all layers would take much memory.
//
// Float32 goes through all layers with a few rows at a time, and adds up the weights' gradients
// over those parts, in their order. Products of bfloat16 may be deferred until the gradients of all
// virtual workers are known (DeferredGradients), which takes them of all rows at once.
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
    maps_ = buffers.AddRows(widest, dim_);
    input_row_ = buffers.AddRow(vectors_ * dim_);
    x0_row_ = buffers.AddRow(vectors_);
    maps_row_ = buffers.AddRow(widest);
    sums_row_ = buffers.AddRow(widest);
    pair_scratch_ = buffers.AddRow(PairScratch(widest, vectors_));
    if (buffers.precision() != Precision::kFloat32) return;
    int64_t largest = 0;
    for (Layer& layer : layers_) {
      layer.gradient = part_of_gradient_;
      part_of_gradient_ += WholeLines(WeightsOf(layer));
      largest = std::max(largest, WeightsOf(layer));
    }
    gradients_row_ = buffers.ShareRow(part_of_gradient_ + largest);
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
    BlockedMatrix &pairs = pass.buffers[pairs_], &maps = pass.buffers[maps_];
    ForRows(pass, [&](int64_t first, int64_t rows) {
      for (const Layer& layer : layers_) {
        SetPairs(pass, layer, first, rows);
        maps.Reshape(rows, layer.maps, pairs.precision());
        Gemm(pairs, pass.parameters.weight(layer.weight).transposed, {}, &maps);
        for (int64_t row = 0; row < rows; ++row)
          pass.buffers[layer.output].CopyRow(first + row, 0, maps, row, 0, layer.maps);
      }
    });
    for (const Layer& layer : layers_) SumMaps(pass, layer, output);
  }

  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("cin");
    BlockedMatrix &d_maps = pass.buffers[maps_], &d_pairs = pass.buffers[d_pairs_];
    BlockedMatrix &d_x0 = pass.buffers[d_x0_], &pairs = pass.buffers[pairs_];
    std::fill_n(d_x0.data(), d_x0.size(), 0.0f);
    ForRows(pass, [&](int64_t first, int64_t rows) {
      SetGradientOfSums(pass, layers_.back(), *d_output, first, rows);
      for (size_t k = layers_.size(); k-- > 0;) {
        const Layer& layer = layers_[k];
        SetPairs(pass, layer, first, rows);
        AddWeightGradient(pass, layer, first == 0, gradients);
        if (k == 0 && d_inputs.front() == nullptr) break;
        d_pairs.Reshape(rows, pairs.columns(), pairs.precision());
        Gemm(d_maps, pass.parameters.weight(layer.weight).straight, {}, &d_pairs);
        if (k > 0) SetGradientOfSums(pass, layers_[k - 1], *d_output, first, rows);
        PairProductsBackward(d_pairs, InputOf(pass, layer), pass.buffers[x0_], first,
                             pass.rows[pair_scratch_].data(), k > 0 ? &d_maps : nullptr, &d_x0);
      }
    });
    SetWeightGradients(pass, gradients);
    if (d_inputs.front() != nullptr) SetGradientOfInput(pass, d_inputs.front());
  }

 private:
  struct Layer {
    int64_t maps, before;  // its own, and those of the layer before it (or vectors)
    int64_t column;        // of its first sum in the block's output
    int64_t weight;        // offset of the parameter
    size_t output;         // buffer
    int64_t gradient = 0;  // where that of its weight begins in the row of gradients
  };

  int64_t WeightsOf(const Layer& layer) const { return layer.maps * layer.before * vectors_; }

  static int64_t WholeLines(int64_t floats) { return (floats + 15) / 16 * 16; }

  // Calls body(the first row, how many) for parts of all rows.
  template <typename Body>
  void ForRows(const BlockPass& pass, const Body& body) const {
    const BlockedMatrix& x0 = pass.buffers[x0_];
    const int64_t most = x0.precision() == Precision::kFloat32 ? kRowsAtOnce : x0.rows();
    for (int64_t first = 0; first < x0.rows(); first += most)
      body(first, std::min(most, x0.rows() - first));
  }

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

  void SetPairs(const BlockPass& pass, const Layer& layer, int64_t first, int64_t rows) const {
    const BlockedMatrix& x0 = pass.buffers[x0_];
    BlockedMatrix& pairs = pass.buffers[pairs_];
    pairs.Reshape(rows, layer.before * vectors_, x0.precision());
    PairProducts(InputOf(pass, layer), x0, first, pass.rows[pair_scratch_].data(), &pairs);
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

  // What the sums of its maps give for the maps of these rows.
  void SetGradientOfSums(const BlockPass& pass, const Layer& layer, const BlockedMatrix& d_output,
                         int64_t first, int64_t rows) const {
    BlockedMatrix& d_maps = pass.buffers[maps_];
    d_maps.Reshape(rows, layer.maps, d_maps.precision());
    for (int64_t row = 0; row < rows; ++row)
      d_maps.CopyRow(row, 0, d_output, (first + row) / dim_, layer.column, layer.maps);
  }

  void AddWeightGradient(const BlockPass& pass, const Layer& layer, bool is_first,
                         WeightGradients* gradients) const {
    const BlockedMatrix &d_maps = pass.buffers[maps_], &pairs = pass.buffers[pairs_];
    if (pairs.precision() != Precision::kFloat32)
      return gradients->Add(d_maps, pairs, layer.weight, std::nullopt);
    float* const gradients_row = pass.rows[gradients_row_].data();
    float* const sum = gradients_row + layer.gradient;
    if (is_first) return TransposedGemm(d_maps, pairs, nullptr, sum);
    float* const part = gradients_row + part_of_gradient_;
    TransposedGemm(d_maps, pairs, nullptr, part);
    for (int64_t i = 0; i < WeightsOf(layer); ++i) sum[i] += part[i];
  }

  // The sums over all parts, if there are parts: map by map, because a matrix of pairs may have no
  // room for all weights.
  void SetWeightGradients(const BlockPass& pass, WeightGradients* gradients) const {
    BlockedMatrix& gradient = pass.buffers[pairs_];
    if (gradient.precision() != Precision::kFloat32) return;
    for (const Layer& layer : layers_) {
      const int64_t pairs = layer.before * vectors_;
      const float* const sum = pass.rows[gradients_row_].data() + layer.gradient;
      gradient.Reshape(1, pairs);
      for (int64_t map = 0; map < layer.maps; ++map) {
        gradient.SetRow(0, 0, sum + map * pairs, pairs);
        gradients->AddVector(gradient, layer.weight + map * pairs);
      }
    }
  }

  int64_t dim_, vectors_;
  std::vector<Layer> layers_;
  // Buffers: X^0 and its gradient; of some rows, the pairs of a layer and their gradient, and its
  // maps or their gradient.
  size_t x0_, d_x0_, pairs_, d_pairs_, maps_;
  size_t input_row_, x0_row_, maps_row_, sums_row_, pair_scratch_;
  size_t gradients_row_ = 0;      // of the weights, in float32
  int64_t part_of_gradient_ = 0;  // where one of some rows begins in it
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
