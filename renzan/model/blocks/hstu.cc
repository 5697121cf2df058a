#include "renzan/model/blocks/hstu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/attention_heads.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/activation.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

AttentionHeads HstuHeadsOf(const Hstu& options, const BlockPlace& place) {
  const int64_t dim = place.DimOfAll();
  if (options.dim == 0 && dim % options.heads != 0)
    place.Reject(
        fmt::format("has {} heads, but its input has {}, whose dimension is no multiple: "
                    "say which dim each head has",
                    options.heads, Describe(place.input())));
  AttentionHeads heads = {.vectors = std::ssize(place.input()),
                          .heads = options.heads,
                          .dim = options.dim == 0 ? dim / options.heads : options.dim,
                          .scale = 1,
                          .causal = true,
                          .kind = AttentionHeads::kSilu};
  if (heads.width() < 2)
    place.Reject("normalizes two columns or more, but heads · dim is 1: set dim");
  return heads;
}

class HstuBlock final : public Block {
 public:
  HstuBlock(const Hstu& options, const BlockPlace& place)
      : Block(place.input(), place.SequenceOf(0)),
        heads_(HstuHeadsOf(options, place)),
        input_(place, 0),
        width_(heads_.width()) {
    const int64_t positions = heads_.vectors, dim = input_.dim();
    projection_ = place.parameters.Add(place.name + ".projection.weight", {4 * width_, dim},
                                       Initializer::kXavierNormal, positions);
    if (options.positions == "relative")
      distance_ =
          place.parameters.Add(place.name + ".distance", {positions}, Initializer::kBiasNormal);
    output_weight_ = place.parameters.Add(place.name + ".output.weight", {dim, width_},
                                          Initializer::kXavierNormal, positions);
    output_bias_ = place.parameters.Add(place.name + ".output.bias", {dim}, Initializer::kZero);
    const auto rows = [&](int64_t columns, Precision precision) {
      return place.buffers.Add(columns, precision, positions);
    };
    const Precision precision = place.buffers.precision();
    x_ = rows(dim, precision);
    sums_ = rows(4 * width_, precision);
    projected_ = rows(4 * width_, precision);
    attended_ = rows(width_, Precision::kFloat32);
    gated_ = rows(width_, precision);
    d_gated_ = rows(width_, precision);
    y_ = rows(dim, precision);
    if (place.d_inputs) d_x_ = rows(dim, Precision::kFloat32);
    if (distance_) d_distance_ = place.buffers.Add(positions, Precision::kFloat32);
    values_ = place.buffers.ShareRow(7 * heads_.columns() + heads_.scratch() + 2 * heads_.lanes() +
                                     positions);
    row_ = place.buffers.AddRow(std::max(3 * width_, dim));
  }

  double Flops(bool d_inputs) const override {
    const double weights = static_cast<double>(5 * input_.columns() * width_);
    return 12.0 * static_cast<double>(heads_.vectors * heads_.vectors * width_) +
           (d_inputs ? 6 : 4) * weights;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("hstu");
    BlockedMatrix &x = pass.buffers[x_], &y = pass.buffers[y_];
    ToRows(*inputs.front(), &x);
    Gemm(x, pass.parameters.weight(projection_).transposed, {}, &pass.buffers[sums_]);
    Activate(Activation::kSilu, pass.buffers[sums_], &pass.buffers[projected_]);
    const AttentionValues values = Values(pass);
    for (int64_t i = 0; i < output->rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i);
      GetProjections(pass, i, used, values);
      heads_.Forward(values, used);
      heads_.Set(values.output, used, AsRows(i, 0), &pass.buffers[attended_]);
    }
    Gate(pass);
    Gemm(pass.buffers[gated_], pass.parameters.weight(output_weight_).transposed,
         {.bias = pass.parameters.vector(output_bias_)}, &y);
    Add(x, &y);
    for (int64_t r = 0; r < y.rows(); ++r)
      output->CopyRow(r / heads_.vectors, r % heads_.vectors * input_.dim(), y, r, 0, input_.dim());
    input_.ZeroUnused(pass, output);
  }

  // What was projected becomes its gradient.
  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix& output, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("hstu");
    BlockedMatrix &d_y = pass.buffers[y_], &d_projected = pass.buffers[projected_];
    input_.ZeroUnused(pass, d_output);
    ToRows(*d_output, &d_y);
    gradients->Add(d_y, pass.buffers[gated_], output_weight_, output_bias_);
    Gemm(d_y, pass.parameters.weight(output_weight_).straight, {}, &pass.buffers[d_gated_]);
    ThroughGate(pass);
    const AttentionValues values = Values(pass);
    for (int64_t i = 0; i < output.rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i);
      GetProjections(pass, i, used, values);
      heads_.Get(pass.buffers[attended_], AsRows(i, 0), used, values.output);
      if (distance_) std::fill_n(values.d_bias, heads_.vectors, 0.0f);
      heads_.Backward(values, used);
      heads_.Set(values.d_value, used, AsRows(i, kValue), &d_projected);
      heads_.Set(values.d_query, used, AsRows(i, kQuery), &d_projected);
      heads_.Set(values.d_key, used, AsRows(i, kKey), &d_projected);
      if (distance_) pass.buffers[d_distance_].SetRow(i, 0, values.d_bias, heads_.vectors);
    }
    if (distance_) gradients->AddVector(pass.buffers[d_distance_], *distance_);
    ActivateBackward(Activation::kSilu, pass.buffers[sums_], &d_projected);
    gradients->Add(d_projected, pass.buffers[x_], projection_, std::nullopt);
    if (d_inputs.front() == nullptr) return;
    BlockedMatrix& d_x = pass.buffers[d_x_];
    float* const row = pass.rows[row_].data();
    for (int64_t r = 0; r < d_x.rows(); ++r) {
      d_y.GetRow(r, 0, row, input_.dim());
      d_x.SetRow(r, 0, row, input_.dim());
    }
    Gemm(d_projected, pass.parameters.weight(projection_).straight, {.accumulate = true}, &d_x);
    for (int64_t r = 0; r < d_x.rows(); ++r) {
      d_x.GetRow(r, 0, row, input_.dim());
      d_inputs.front()->SetRow(r / heads_.vectors, r % heads_.vectors * input_.dim(), row,
                               input_.dim());
    }
  }

 private:
  enum { kGate, kValue, kQuery, kKey };  // U, V, Q and K in the projection

  AttentionValues Values(const BlockPass& pass) const {
    float* next = pass.rows[values_].data();
    const auto take = [&next](int64_t n) { return (next += n) - n; };
    const int64_t n = heads_.columns();
    AttentionValues values = {.query = take(n),
                              .key = take(n),
                              .value = take(n),
                              .output = take(n),
                              .d_query = take(n),
                              .d_key = take(n),
                              .d_value = take(n),
                              .scratch = take(heads_.scratch())};
    if (!distance_) return values;
    float* const bias = take(2 * heads_.lanes());
    std::fill_n(bias, 2 * heads_.lanes(), 0.0f);  // of what is not seen
    std::copy_n(pass.parameters.vector(*distance_), heads_.vectors, bias + heads_.lanes());
    values.bias = bias;
    values.d_bias = take(heads_.vectors);
    return values;
  }

  // A sample's vectors in a matrix with a row for each.
  VectorsAt AsRows(int64_t sample, int64_t part) const {
    return {
        .row = sample * heads_.vectors, .column = part * width_, .row_step = 1, .column_step = 0};
  }
  void GetProjections(const BlockPass& pass, int64_t sample, int64_t used,
                      const AttentionValues& values) const {
    const BlockedMatrix& projected = pass.buffers[projected_];
    heads_.Get(projected, AsRows(sample, kValue), used, values.value);
    heads_.Get(projected, AsRows(sample, kQuery), used, values.query);
    heads_.Get(projected, AsRows(sample, kKey), used, values.key);
  }
  void ToRows(const BlockedMatrix& from, BlockedMatrix* to) const {
    for (int64_t r = 0; r < to->rows(); ++r)
      to->CopyRow(r, 0, from, r / heads_.vectors, r % heads_.vectors * input_.dim(), input_.dim());
  }

  // In place; returns what the values were multiplied by.
  float Normalize(float* a) const {
    const float n = static_cast<float>(width_);
    float sum = 0, squares = 0;
    for (int64_t c = 0; c < width_; ++c) sum += a[c];
    for (int64_t c = 0; c < width_; ++c) a[c] -= sum / n;
    for (int64_t c = 0; c < width_; ++c) squares += a[c] * a[c];
    const float scale = 1 / std::sqrt(squares / n + 1e-6f);
    for (int64_t c = 0; c < width_; ++c) a[c] *= scale;
    return scale;
  }

  // norm(A V) ⊙ U
  void Gate(const BlockPass& pass) const {
    float *const a = pass.rows[row_].data(), *const u = a + width_;
    BlockedMatrix& gated = pass.buffers[gated_];
    for (int64_t r = 0; r < gated.rows(); ++r) {
      pass.buffers[attended_].GetRow(r, 0, a, width_);
      pass.buffers[projected_].GetRow(r, 0, u, width_);
      Normalize(a);
      for (int64_t c = 0; c < width_; ++c) a[c] *= u[c];
      gated.SetRow(r, 0, a, width_);
    }
  }
  // The gradients of A V and of U, in place of these.
  void ThroughGate(const BlockPass& pass) const {
    float *const a = pass.rows[row_].data(), *const u = a + width_, *const d = u + width_;
    BlockedMatrix &attended = pass.buffers[attended_], &projected = pass.buffers[projected_];
    const float n = static_cast<float>(width_);
    for (int64_t r = 0; r < attended.rows(); ++r) {
      attended.GetRow(r, 0, a, width_);
      projected.GetRow(r, 0, u, width_);
      pass.buffers[d_gated_].GetRow(r, 0, d, width_);
      const float scale = Normalize(a);
      float sum = 0, product = 0;
      for (int64_t c = 0; c < width_; ++c) {
        const float d_normalized = d[c] * u[c];
        u[c] = d[c] * a[c];
        d[c] = d_normalized;
        sum += d[c];
        product += d[c] * a[c];
      }
      for (int64_t c = 0; c < width_; ++c) d[c] = scale * (d[c] - sum / n - a[c] * (product / n));
      projected.SetRow(r, 0, u, width_);
      attended.SetRow(r, 0, d, width_);
    }
  }

  AttentionHeads heads_;
  SequenceInputOf input_;
  int64_t width_;                                     // of all heads
  int64_t projection_, output_weight_, output_bias_;  // offsets of the parameters
  std::optional<int64_t> distance_;
  // Buffers with a row for each vector: the input, W x, [U, V, Q, K], A V, what is projected last,
  // and the result of that; and gradients.
  size_t x_, sums_, projected_, attended_, gated_, y_, d_gated_, d_x_ = 0;
  size_t d_distance_ = 0;  // buffer of each sample's part
  size_t values_, row_;    // rows: of one sample's AttentionValues; of one vector
};

}  // namespace

void Hstu::Describe(ConfigFields& fields) {
  fields.Range("heads", &heads, 1, 256);
  fields.Range("dim", &dim, 0, 4096,
               "of each head's U, V, Q and K; 0: the input's dimension / heads");
  fields.Choice("positions", &positions, {"relative", "none"},
                "whether scores have a learned bias for each distance of positions");
}

std::unique_ptr<Block> Hstu::Make(const BlockPlace& place) const {
  place.positions();
  return std::make_unique<HstuBlock>(*this, place);
}

}  // namespace renzan
