#include "renzan/model/blocks/hstu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

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
    sums_ = rows(4 * width_, precision);
    projected_ = rows(4 * width_, precision);
    attended_ = rows(width_, Precision::kFloat32);
    gated_ = rows(width_, precision);
    d_gated_ = rows(width_, precision);
    if (sequence()) {
      newest_ = place.buffers.Add(dim, precision);
    } else {
      x_ = rows(dim, precision);
      y_ = rows(dim, precision);
    }
    if (place.d_inputs) d_x_ = rows(dim, Precision::kFloat32);
    if (distance_) d_distance_ = place.buffers.Add(positions, Precision::kFloat32);
    values_ = place.buffers.ShareRow(7 * heads_.columns() + heads_.scratch() + 2 * heads_.lanes() +
                                     positions);
    row_ = place.buffers.AddRow(std::max(3 * width_, 2 * dim));
  }

  // All vectors are projected, but only the newest goes on.
  Needs NewestNeeds() const override { return Needs::kAll; }
  double Flops(bool d_inputs) const override {
    const int64_t results = only_newest() ? 1 : heads_.vectors;
    const double weights =
        static_cast<double>((4 * heads_.vectors + results) * input_.dim() * width_);
    return 12.0 * static_cast<double>(heads_.vectors * results * width_) +
           (d_inputs ? 6 : 4) * weights;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("hstu");
    if (!sequence()) ToRows(*inputs.front(), &pass.buffers[x_]);
    const BlockedMatrix& x = VectorsOf(pass, inputs);
    const int64_t results = sequence() ? output->rows() : x.rows();
    for (const size_t each : {sums_, projected_}) Resize(x.rows(), &pass.buffers[each]);
    for (const size_t each : {attended_, gated_, d_gated_}) Resize(results, &pass.buffers[each]);
    Gemm(x, pass.parameters.weight(projection_).transposed, {}, &pass.buffers[sums_]);
    Activate(Activation::kSilu, pass.buffers[sums_], &pass.buffers[projected_]);
    const AttentionValues values = Values(pass);
    ForEachSample(pass, x, [&](const SampleRows& of) {
      GetProjections(pass, of, values);
      if (only_newest()) {
        heads_.ForwardNewest(values, of.used);
      } else {
        heads_.Forward(values, of.used);
      }
      heads_.Set(values.output, of.results, AsRows(of.first_result, 0), &pass.buffers[attended_]);
      for (int64_t r = 0; r < of.results; ++r) Gate(pass, of.first_result + r, RowOf(of, r));
    });
    BlockedMatrix& y = sequence() ? *output : pass.buffers[y_];
    Gemm(pass.buffers[gated_], pass.parameters.weight(output_weight_).transposed,
         {.bias = pass.parameters.vector(output_bias_)}, &y);
    Add(only_newest() ? GetNewest(pass, x, results) : x, &y);
    if (!sequence()) FromRows(pass, y, output);
  }

  // What was projected becomes its gradient.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix&, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("hstu");
    const BlockedMatrix& x = VectorsOf(pass, inputs);
    BlockedMatrix& d_projected = pass.buffers[projected_];
    if (!sequence()) ToRows(*d_output, &pass.buffers[y_]);
    const BlockedMatrix& d_y = sequence() ? *d_output : pass.buffers[y_];
    gradients->Add(d_y, pass.buffers[gated_], output_weight_, output_bias_);
    Gemm(d_y, pass.parameters.weight(output_weight_).straight, {}, &pass.buffers[d_gated_]);
    const AttentionValues values = Values(pass);
    if (distance_)
      std::fill_n(pass.buffers[d_distance_].data(), pass.buffers[d_distance_].size(), 0.0f);
    ForEachSample(pass, x, [&](const SampleRows& of) {
      GetProjections(pass, of, values);
      for (int64_t r = 0; r < of.results; ++r) ThroughGate(pass, of.first_result + r, RowOf(of, r));
      heads_.Get(pass.buffers[attended_], AsRows(of.first_result, 0), of.results, values.output);
      if (distance_) std::fill_n(values.d_bias, heads_.vectors, 0.0f);
      if (only_newest()) {
        heads_.BackwardNewest(values, of.used);
        ZeroOthers(of, &d_projected);
      } else {
        heads_.Backward(values, of.used);
      }
      heads_.Set(values.d_value, of.used, AsRows(of.first, kValue), &d_projected);
      heads_.Set(values.d_query, of.results, AsRows(FirstQuery(of), kQuery), &d_projected);
      heads_.Set(values.d_key, of.used, AsRows(of.first, kKey), &d_projected);
      if (distance_) pass.buffers[d_distance_].SetRow(of.sample, 0, values.d_bias, heads_.vectors);
    });
    if (distance_) gradients->AddVector(pass.buffers[d_distance_], *distance_);
    ActivateBackward(Activation::kSilu, pass.buffers[sums_], &d_projected);
    gradients->Add(d_projected, x, projection_, std::nullopt);
    if (d_inputs.front() != nullptr) InputGradient(pass, x, d_y, d_inputs.front());
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

  static void Resize(int64_t rows, BlockedMatrix* buffer) {
    buffer->Reshape(rows, buffer->columns(), buffer->precision());
  }
  template <typename Body>
  void ForEachSample(const BlockPass& pass, const BlockedMatrix& x, const Body& body) const {
    input_.ForEachSample(pass, x.rows(), only_newest(), body);
  }

  // A row for each vector.
  const BlockedMatrix& VectorsOf(const BlockPass& pass, Inputs inputs) const {
    return sequence() ? *inputs.front() : pass.buffers[x_];
  }
  void ToRows(const BlockedMatrix& from, BlockedMatrix* to) const {
    for (int64_t r = 0; r < to->rows(); ++r)
      to->CopyRow(r, 0, from, r / heads_.vectors, r % heads_.vectors * input_.dim(), input_.dim());
  }
  // `from` may be float32 where `to` has the model's precision.
  void FromRows(const BlockPass& pass, const BlockedMatrix& from, BlockedMatrix* to) const {
    if (sequence() && from.precision() == to->precision()) return Copy(from, to);
    float* const row = pass.rows[row_].data();
    for (int64_t r = 0; r < from.rows(); ++r) {
      from.GetRow(r, 0, row, input_.dim());
      if (sequence()) {
        to->SetRow(r, 0, row, input_.dim());
      } else {
        to->SetRow(r / heads_.vectors, r % heads_.vectors * input_.dim(), row, input_.dim());
      }
    }
  }
  const BlockedMatrix& GetNewest(const BlockPass& pass, const BlockedMatrix& x,
                                 int64_t results) const {
    BlockedMatrix& newest = pass.buffers[newest_];
    Resize(results, &newest);
    ForEachSample(pass, x, [&](const SampleRows& of) {
      if (of.results > 0) newest.CopyRow(of.first_result, 0, x, of.newest(), 0, input_.dim());
    });
    return newest;
  }

  // A sample's vectors in a matrix with a row for each.
  VectorsAt AsRows(int64_t first, int64_t part) const {
    return {.row = first, .column = part * width_, .row_step = 1, .column_step = 0};
  }
  int64_t FirstQuery(const SampleRows& of) const { return only_newest() ? of.newest() : of.first; }
  // Of the vector that gives a sample's r-th result.
  int64_t RowOf(const SampleRows& of, int64_t r) const { return FirstQuery(of) + r; }
  void GetProjections(const BlockPass& pass, const SampleRows& of,
                      const AttentionValues& values) const {
    const BlockedMatrix& projected = pass.buffers[projected_];
    heads_.Get(projected, AsRows(of.first, kValue), of.used, values.value);
    heads_.Get(projected, AsRows(FirstQuery(of), kQuery), of.results, values.query);
    heads_.Get(projected, AsRows(of.first, kKey), of.used, values.key);
  }
  // The gradients of U and Q of vectors that give no result.
  void ZeroOthers(const SampleRows& of, BlockedMatrix* d_projected) const {
    for (int64_t r = of.first; r < of.newest(); ++r)
      for (const int64_t part : {kGate, kQuery})
        d_projected->SetRow(r, part * width_, zeros_.data(), width_);
  }

  void InputGradient(const BlockPass& pass, const BlockedMatrix& x, const BlockedMatrix& d_y,
                     BlockedMatrix* d_input) const {
    BlockedMatrix& d_x = pass.buffers[d_x_];
    Resize(x.rows(), &d_x);
    float *const row = pass.rows[row_].data(), *const d = row + input_.dim();
    const int64_t dim = input_.dim();
    for (int64_t r = 0; r < d_x.rows() && !only_newest(); ++r) {
      d_y.GetRow(r, 0, row, dim);
      d_x.SetRow(r, 0, row, dim);
    }
    Gemm(pass.buffers[projected_], pass.parameters.weight(projection_).straight,
         {.accumulate = !only_newest()}, &d_x);
    ForEachSample(pass, x, [&](const SampleRows& of) {
      if (!only_newest() || of.results == 0) return;
      d_x.GetRow(of.newest(), 0, row, dim);
      d_y.GetRow(of.first_result, 0, d, dim);
      for (int64_t c = 0; c < dim; ++c) row[c] += d[c];
      d_x.SetRow(of.newest(), 0, row, dim);
    });
    FromRows(pass, d_x, d_input);
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

  // norm(A V) ⊙ U of a result, whose U is in row `vector`.
  void Gate(const BlockPass& pass, int64_t result, int64_t vector) const {
    float *const a = pass.rows[row_].data(), *const u = a + width_;
    pass.buffers[attended_].GetRow(result, 0, a, width_);
    pass.buffers[projected_].GetRow(vector, 0, u, width_);
    Normalize(a);
    for (int64_t c = 0; c < width_; ++c) a[c] *= u[c];
    pass.buffers[gated_].SetRow(result, 0, a, width_);
  }
  // The gradients of A V and of U, in place of these.
  void ThroughGate(const BlockPass& pass, int64_t result, int64_t vector) const {
    float *const a = pass.rows[row_].data(), *const u = a + width_, *const d = u + width_;
    BlockedMatrix &attended = pass.buffers[attended_], &projected = pass.buffers[projected_];
    const float n = static_cast<float>(width_);
    attended.GetRow(result, 0, a, width_);
    projected.GetRow(vector, 0, u, width_);
    pass.buffers[d_gated_].GetRow(result, 0, d, width_);
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
    projected.SetRow(vector, 0, u, width_);
    attended.SetRow(result, 0, d, width_);
  }

  AttentionHeads heads_;
  SequenceInputOf input_;
  int64_t width_;                                     // of all heads
  int64_t projection_, output_weight_, output_bias_;  // offsets of the parameters
  std::optional<int64_t> distance_;
  // Buffers with a row for each vector: W x and [U, V, Q, K]; with one for each result: A V, what
  // is projected last, and its gradient; the gradient of the input. Of what is no sequence, also
  // the input and the output.
  size_t sums_, projected_, attended_, gated_, d_gated_, d_x_ = 0, x_ = 0, y_ = 0;
  size_t newest_ = 0;      // buffer: the input's newest vectors
  size_t d_distance_ = 0;  // buffer of each sample's part
  size_t values_, row_;    // rows: of one sample's AttentionValues; of one vector
  std::vector<float> zeros_ = std::vector<float>(static_cast<size_t>(width_));
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
