#include "renzan/model/blocks/target_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/activation.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

constexpr size_t kQuery = 0, kKeys = 1;  // inputs

class TargetAttentionBlock final : public Block {
 public:
  TargetAttentionBlock(const TargetAttention& options, const BlockPlace& place)
      : Block({{place.name, place.DimOfAll(kKeys)}}),
        keys_(place, kKeys),
        activation_(ActivationNamed(options.activation)),
        softmax_(options.softmax) {
    if (const int64_t query = ColumnsOf(place.inputs[kQuery]); query != keys_.dim())
      place.Reject(fmt::format("compares {} with {}: they must have one width",
                               Describe(place.inputs[kQuery]), Describe(place.inputs[kKeys])));
    int64_t in = 4 * keys_.dim(), widest = in;
    std::vector<int64_t> widths = options.layers;
    widths.push_back(1);
    x_ = AddRows(place, in);
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string name = fmt::format("{}.{}", place.name, i);
      Layer layer;
      layer.weight = place.parameters.Add(name + ".weight", {widths[i], in},
                                          Initializer::kXavierNormal, keys_.positions());
      // A softmax would not see the last one.
      if (i + 1 < widths.size() || !softmax_)
        layer.bias = place.parameters.Add(name + ".bias", {widths[i]}, Initializer::kBiasNormal);
      layer.sums = AddRows(place, widths[i]);
      layer.activations = i + 1 < widths.size() ? AddRows(place, widths[i]) : layer.sums;
      layers_.push_back(layer);
      in = widths[i];
      widest = std::max(widest, in);
    }
    for (size_t& gradient : gradients_) gradient = AddRows(place, widest);
    attention_ = place.buffers.Add(keys_.positions(), Precision::kFloat32);
    row_ = place.buffers.AddRow(2 * keys_.columns() + 7 * keys_.dim() + 2 * keys_.positions());
    for (const Layer& layer : layers_) flops_ += WeightsOf(place, layer);
  }

  VectorLayout TakesAs(size_t input) const override {
    return input == kKeys ? VectorLayout::kRows : VectorLayout::kColumns;
  }
  double Flops(bool d_inputs) const override {
    return static_cast<double>(keys_.positions()) *
           ((d_inputs ? 6.0 : 4.0) * flops_ + 14 * static_cast<double>(keys_.dim()));
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("target attention");
    const OfSample of = Values(pass);
    BlockedMatrix& x = pass.buffers[x_];
    const int64_t rows = keys_.RowsOf(pass, output->rows());
    x.Reshape(rows, x.columns(), x.precision());
    for (int64_t i = 0, row = 0; i < output->rows(); ++i) {
      const int64_t length = Load(pass, inputs, i, row, of);
      for (int64_t v = 0; v < length; ++v, ++row) {
        Compare(of, v);
        x.SetRow(row, 0, of.compared, 4 * keys_.dim());
      }
    }
    const BlockedMatrix* in = &x;
    for (const Layer& layer : layers_) {
      for (const size_t b : {layer.sums, layer.activations}) {
        BlockedMatrix& buffer = pass.buffers[b];
        buffer.Reshape(rows, buffer.columns(), buffer.precision());
      }
      Gemm(*in, pass.parameters.weight(layer.weight).transposed,
           {.bias = layer.bias ? pass.parameters.vector(*layer.bias) : nullptr},
           &pass.buffers[layer.sums]);
      if (&layer != &layers_.back())
        Activate(activation_, pass.buffers[layer.sums], &pass.buffers[layer.activations]);
      in = &pass.buffers[layer.activations];
    }
    for (int64_t i = 0, row = 0; i < output->rows(); ++i) {
      const int64_t length = Load(pass, inputs, i, row, of);
      for (int64_t v = 0; v < length; ++v, ++row) of.attention[v] = in->at(row, 0);
      if (softmax_) Normalize(length, of.attention);
      pass.buffers[attention_].SetRow(i, 0, of.attention, keys_.positions());
      float* const sum = of.compared;
      std::fill_n(sum, keys_.dim(), 0.0f);
      for (int64_t v = 0; v < length; ++v)
        for (int64_t d = 0; d < keys_.dim(); ++d)
          sum[d] += of.attention[v] * of.keys[v * keys_.dim() + d];
      output->SetRow(i, 0, sum, keys_.dim());
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("target attention");
    const OfSample of = Values(pass);
    BlockedMatrix* dy = &pass.buffers[gradients_[layers_.size() % 2]];
    dy->Reshape(pass.buffers[x_].rows(), 1, dy->precision());
    for (int64_t i = 0, row = 0; i < output.rows(); ++i) {
      const int64_t length = Load(pass, inputs, i, row, of);
      pass.buffers[attention_].GetRow(i, 0, of.attention, keys_.positions());
      d_output->GetRow(i, 0, of.d_output, keys_.dim());
      GradientOfScores(length, of);
      for (int64_t v = 0; v < length; ++v, ++row) dy->Set(row, 0, of.d_attention[v]);
    }
    for (size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const BlockedMatrix& in = pass.buffers[i == 0 ? x_ : layers_[i - 1].activations];
      gradients->Add(*dy, in, layer.weight, layer.bias);
      BlockedMatrix* const d_in = &pass.buffers[gradients_[i % 2]];
      d_in->Reshape(in.rows(), in.columns(), in.precision());
      Gemm(*dy, pass.parameters.weight(layer.weight).straight, {}, d_in);
      if (i > 0) ActivateBackward(activation_, pass.buffers[layers_[i - 1].sums], d_in);
      dy = d_in;
    }
    for (int64_t i = 0, row = 0; i < output.rows(); ++i) {
      const int64_t length = Load(pass, inputs, i, row, of);
      pass.buffers[attention_].GetRow(i, 0, of.attention, keys_.positions());
      d_output->GetRow(i, 0, of.d_output, keys_.dim());
      InputGradients(*dy, row, length, of);
      if (d_inputs[kQuery] != nullptr) d_inputs[kQuery]->SetRow(i, 0, of.d_query, keys_.dim());
      if (d_inputs[kKeys] != nullptr) keys_.Set(of.d_keys, i, row, length, d_inputs[kKeys]);
      row += length;
    }
  }

 private:
  struct Layer {
    int64_t weight = 0;  // offsets of the parameters
    std::optional<int64_t> bias;
    size_t sums = 0, activations = 0;
  };
  // One sample's values, in float32.
  struct OfSample {
    float *query, *keys, *compared, *attention;
    float *d_query, *d_keys, *d_compared, *d_attention, *d_output;
  };

  // A buffer with a row for each position.
  size_t AddRows(const BlockPlace& place, int64_t columns) const {
    return place.buffers.AddRows(columns, keys_.positions());
  }
  static double WeightsOf(const BlockPlace& place, const Layer& layer) {
    for (const Parameter& parameter : place.parameters.parameters())
      if (parameter.offset == layer.weight) return static_cast<double>(parameter.size);
    return 0;
  }

  OfSample Values(const BlockPass& pass) const {
    float* next = pass.rows[row_].data();
    const auto take = [&next](int64_t n) { return (next += n) - n; };
    const int64_t dim = keys_.dim();
    OfSample of = {};
    of.query = take(dim);
    of.keys = take(keys_.columns());
    of.compared = take(4 * dim);
    of.attention = take(keys_.positions());
    of.d_query = take(dim);
    of.d_keys = take(keys_.columns());
    of.d_compared = of.compared;  // which is no longer needed
    of.d_attention = take(keys_.positions());
    of.d_output = take(dim);
    return of;
  }

  // Returns how many positions the sample uses, from `row` on; attention of the others is 0.
  int64_t Load(const BlockPass& pass, Inputs inputs, int64_t sample, int64_t row,
               const OfSample& of) const {
    const int64_t length = keys_.LengthOf(pass, sample);
    inputs[kQuery]->GetRow(sample, 0, of.query, keys_.dim());
    keys_.Get(*inputs[kKeys], sample, row, length, of.keys);
    std::fill_n(of.attention, keys_.positions(), 0.0f);
    return length;
  }

  void Compare(const OfSample& of, int64_t position) const {
    const int64_t dim = keys_.dim();
    const float* const key = of.keys + position * dim;
    std::copy_n(of.query, dim, of.compared);
    std::copy_n(key, dim, of.compared + dim);
    for (int64_t d = 0; d < dim; ++d) {
      of.compared[2 * dim + d] = of.query[d] - key[d];
      of.compared[3 * dim + d] = of.query[d] * key[d];
    }
  }

  static void Normalize(int64_t n, float* scores) {
    if (n == 0) return;
    const float most = *std::max_element(scores, scores + n);
    float sum = 0;
    for (int64_t v = 0; v < n; ++v) {
      scores[v] = static_cast<float>(std::exp(double{scores[v]} - double{most}));
      sum += scores[v];
    }
    for (int64_t v = 0; v < n; ++v) scores[v] /= sum;
  }

  // To d_attention.
  void GradientOfScores(int64_t length, const OfSample& of) const {
    float mean = 0;
    for (int64_t v = 0; v < length; ++v) {
      float d = 0;
      for (int64_t c = 0; c < keys_.dim(); ++c) d += of.d_output[c] * of.keys[v * keys_.dim() + c];
      of.d_attention[v] = d;
      mean += of.attention[v] * d;
    }
    if (!softmax_) return;
    for (int64_t v = 0; v < length; ++v)
      of.d_attention[v] = of.attention[v] * (of.d_attention[v] - mean);
  }

  // `d_x`: of the compared values, the sample's from `row` on.
  void InputGradients(const BlockedMatrix& d_x, int64_t row, int64_t length,
                      const OfSample& of) const {
    const int64_t dim = keys_.dim();
    const float *const d_q = of.d_compared, *const d_k = d_q + dim;
    const float *const d_difference = d_k + dim, *const d_product = d_difference + dim;
    std::fill_n(of.d_query, dim, 0.0f);
    for (int64_t v = 0; v < length; ++v) {
      d_x.GetRow(row + v, 0, of.d_compared, 4 * dim);
      const float* const key = of.keys + v * dim;
      float* const d_key = of.d_keys + v * dim;
      for (int64_t d = 0; d < dim; ++d) {
        of.d_query[d] += (d_q[d] + d_difference[d]) + key[d] * d_product[d];
        d_key[d] = (of.attention[v] * of.d_output[d] + (d_k[d] - d_difference[d])) +
                   of.query[d] * d_product[d];
      }
    }
  }

  SequenceInputOf keys_;
  Activation activation_;
  bool softmax_;
  std::vector<Layer> layers_;
  double flops_ = 0;     // weights of the MLP
  size_t x_;             // buffer of the compared values
  size_t gradients_[2];  // buffers of the layers' gradients, alternating
  size_t attention_;     // buffer of a_j between forward and backward
  size_t row_;           // of one sample's values
};

}  // namespace

void TargetAttention::Describe(ConfigFields& fields) {
  fields.Field("layers", &layers, "hidden layers of the MLP that compares");
  fields.Require(std::all_of(layers.begin(), layers.end(),
                             [](int64_t width) { return width >= 1 && width <= kMaxWidth; }),
                 "layers", "must have 1 to 1048576 units each");
  fields.Choice("activation", &activation, ActivationNames(), "after each hidden layer");
  fields.Field("softmax", &softmax, "normalizes the weights of the positions to a sum of 1");
}

std::unique_ptr<Block> TargetAttention::Make(const BlockPlace& place) const {
  if (place.inputs.size() != 2)
    place.Reject(fmt::format("takes a vector and a sequence, but has {}",
                             Counted(place.inputs.size(), "input")));
  return std::make_unique<TargetAttentionBlock>(*this, place);
}

}  // namespace renzan
