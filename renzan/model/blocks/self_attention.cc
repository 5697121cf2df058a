#include "renzan/model/blocks/self_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/attention_heads.h"
#include "renzan/model/blocks/sequence.h"
#include "renzan/nn/elementwise.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

AttentionHeads HeadsOf(const SelfAttention& options, const BlockPlace& place) {
  const int64_t dim = place.DimOfAll();
  if (options.dim == 0 && dim % options.heads != 0)
    place.Reject(
        fmt::format("has {} heads, but its input has {}, whose dimension is no multiple: "
                    "say which dim each head has",
                    options.heads, Describe(place.input())));
  const int64_t of_each = options.dim == 0 ? dim / options.heads : options.dim;
  return {.vectors = std::ssize(place.input()),
          .heads = options.heads,
          .dim = of_each,
          .scale = options.scale ? 1 / std::sqrt(static_cast<float>(of_each)) : 1,
          .causal = options.causal};
}

Shape OutputOf(Shape shape, int64_t dim) {
  for (FeatureVector& vector : shape) vector.dim = dim;
  return shape;
}

class SelfAttentionBlock final : public Block {
 public:
  SelfAttentionBlock(const SelfAttention& options, const BlockPlace& place)
      : Block(OutputOf(place.input(), HeadsOf(options, place).width()), place.SequenceOf(0)),
        heads_(HeadsOf(options, place)),
        input_(place, 0),
        dim_(place.DimOfAll()),
        residual_(options.residual),
        relu_(options.relu) {
    std::vector<const char*> names = {"query", "key", "value"};
    if (residual_ && dim_ != heads_.width()) names.push_back("residual");
    for (const char* name : names)
      projections_.push_back(
          {.weight = place.parameters.Add(fmt::format("{}.{}.weight", place.name, name),
                                          {heads_.width(), dim_}, Initializer::kXavierNormal,
                                          heads_.vectors),
           .result = AddVectors(place, heads_.width(), place.buffers.precision())});
    const Precision precision = place.buffers.precision();
    if (!sequence()) x_ = AddVectors(place, dim_, precision);
    if (place.d_inputs) d_x_ = AddVectors(place, dim_, Precision::kFloat32);
    if (sequence()) {
      newest_ = place.buffers.Add(dim_, precision);
      if (place.d_inputs) d_newest_ = place.buffers.Add(dim_, Precision::kFloat32);
    }
    values_ = place.buffers.ShareRow(7 * heads_.columns() + heads_.scratch());
    row_ = place.buffers.AddRow((heads_.vectors + 1) * dim_);
  }

  Needs NewestNeeds() const override { return Needs::kAll; }
  double Flops(bool d_inputs) const override {
    const int64_t columns = heads_.vectors * heads_.width();
    const int64_t queries = only_newest() ? 1 : heads_.vectors;
    const double products = static_cast<double>(queries * columns);
    const int64_t of_queries = std::ssize(projections_) - 2;  // projections; keys and values: 2
    const double weights =
        static_cast<double>(dim_ * heads_.width() * (of_queries * queries + 2 * heads_.vectors));
    return 12 * products + (d_inputs ? 6 : 4) * weights;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("self attention");
    if (!sequence()) ToRows(*inputs.front(), &pass.buffers[x_]);
    const BlockedMatrix& x = VectorsOf(pass, inputs);
    if (only_newest()) GetNewest(pass, x, output->rows());
    for (const Projection& each : projections_) {
      const BlockedMatrix& from = InputOf(pass, each, x);
      BlockedMatrix& result = pass.buffers[each.result];
      result.Reshape(from.rows(), heads_.width(), result.precision());
      Gemm(from, pass.parameters.weight(each.weight).transposed, {}, &result);
    }
    const AttentionValues values = Values(pass);
    ForEachSample(pass, x, [&](const SampleRows& sample) {
      GetProjections(pass, sample, values);
      if (only_newest()) {
        heads_.ForwardNewest(values, sample.used);
      } else {
        heads_.Forward(values, sample.used);
      }
      if (residual_) AddResidual(pass, InputOf(pass, projections_[kQuery], x), sample, values);
      if (relu_)
        for (int64_t c = 0; c < sample.results * heads_.stride(); ++c)
          values.output[c] = values.output[c] < 0 ? 0 : values.output[c];  // NaN stays NaN
      heads_.Set(values.output, sample.results, InOutput(sample), output);
    });
  }

  // The projections' results become their gradients.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("self attention");
    if (relu_) ReluBackward(output, d_output);
    const BlockedMatrix& x = VectorsOf(pass, inputs);
    const AttentionValues values = Values(pass);
    ForEachSample(pass, x, [&](const SampleRows& sample) {
      GetProjections(pass, sample, values);
      heads_.Get(*d_output, InOutput(sample), sample.results, values.output);
      if (only_newest()) {
        heads_.BackwardNewest(values, sample.used);
      } else {
        heads_.Backward(values, sample.used);
      }
      const auto set = [&](size_t projection, const float* from, int64_t first, int64_t count) {
        heads_.Set(from, count, AsRows(first), &pass.buffers[projections_[projection].result]);
      };
      set(kQuery, values.d_query, sample.first_result, sample.results);
      set(kKey, values.d_key, sample.first, sample.used);
      set(kValue, values.d_value, sample.first, sample.used);
      if (projects_residual()) set(kResidual, values.output, sample.first_result, sample.results);
    });
    for (const Projection& each : projections_)
      gradients->Add(pass.buffers[each.result], InputOf(pass, each, x), each.weight, std::nullopt);
    if (d_inputs.front() == nullptr) return;
    if (only_newest()) {
      GradientThroughNewest(pass, x, *d_output, d_inputs.front());
    } else {
      InputGradient(pass, x, *d_output, d_inputs.front());
    }
  }

 private:
  enum { kQuery, kKey, kValue, kResidual };  // the projections
  struct Projection {
    int64_t weight;  // offset of the parameter
    size_t result;   // buffer
  };

  // A buffer with a row for each vector.
  size_t AddVectors(const BlockPlace& place, int64_t columns, Precision precision) const {
    return place.buffers.Add(columns, precision, heads_.vectors);
  }

  bool projects_residual() const { return projections_.size() > kResidual; }

  AttentionValues Values(const BlockPass& pass) const {
    float* next = pass.rows[values_].data();
    const auto take = [&next](int64_t n) { return (next += n) - n; };
    const int64_t n = heads_.columns();
    return {.query = take(n),
            .key = take(n),
            .value = take(n),
            .output = take(n),
            .d_query = take(n),
            .d_key = take(n),
            .d_value = take(n),
            .scratch = take(heads_.scratch())};
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
      to->CopyRow(r, 0, from, r / heads_.vectors, r % heads_.vectors * dim_, dim_);
  }
  // Copies what gives queries out of all vectors.
  void GetNewest(const BlockPass& pass, const BlockedMatrix& x, int64_t rows) const {
    BlockedMatrix& newest = pass.buffers[newest_];
    newest.Reshape(rows, dim_, newest.precision());
    ForEachSample(pass, x, [&](const SampleRows& sample) {
      if (sample.results > 0) newest.CopyRow(sample.first_result, 0, x, sample.newest(), 0, dim_);
    });
  }
  bool OfQueries(const Projection& projection) const {
    return &projection == &projections_[kQuery] || &projection == &projections_[0] + kResidual;
  }
  // What a projection takes: all vectors `x`, or those that give queries.
  const BlockedMatrix& InputOf(const BlockPass& pass, const Projection& projection,
                               const BlockedMatrix& x) const {
    return only_newest() && OfQueries(projection) ? pass.buffers[newest_] : x;
  }

  // A sample's vectors in the output, and in a matrix with a row for each.
  VectorsAt InOutput(const SampleRows& sample) const {
    if (sequence()) return AsRows(sample.first_result);
    return {.row = sample.sample, .column = 0, .row_step = 0, .column_step = heads_.width()};
  }
  static VectorsAt AsRows(int64_t first) {
    return {.row = first, .column = 0, .row_step = 1, .column_step = 0};
  }
  void GetProjections(const BlockPass& pass, const SampleRows& sample,
                      const AttentionValues& values) const {
    const auto get = [&](size_t projection, int64_t first, int64_t count, float* to) {
      heads_.Get(pass.buffers[projections_[projection].result], AsRows(first), count, to);
    };
    get(kQuery, sample.first_result, sample.results, values.query);
    get(kKey, sample.first, sample.used, values.key);
    get(kValue, sample.first, sample.used, values.value);
  }

  // To the heads' output, which the values of queries no longer matter for. `x`: what gave queries.
  void AddResidual(const BlockPass& pass, const BlockedMatrix& x, const SampleRows& sample,
                   const AttentionValues& values) const {
    float* const residual = values.query;
    const BlockedMatrix& from =
        projects_residual() ? pass.buffers[projections_[kResidual].result] : x;
    heads_.Get(from, AsRows(sample.first_result), sample.results, residual);
    for (int64_t c = 0; c < sample.results * heads_.stride(); ++c) values.output[c] += residual[c];
  }

  void InputGradient(const BlockPass& pass, const BlockedMatrix& x, const BlockedMatrix& d_output,
                     BlockedMatrix* d_input) const {
    BlockedMatrix& d_x = pass.buffers[d_x_];
    d_x.Reshape(x.rows(), dim_, Precision::kFloat32);
    float* const row = pass.rows[row_].data();
    const bool adds_itself = residual_ && !projects_residual();
    if (adds_itself)
      ForEachSample(pass, x, [&](const SampleRows& sample) {
        input_.Get(d_output, sample.sample, sample.first, sample.used, row);
        for (int64_t v = 0; v < sample.used; ++v)
          d_x.SetRow(sample.first + v, 0, row + v * dim_, dim_);
      });
    for (const Projection& each : projections_)
      Gemm(pass.buffers[each.result], pass.parameters.weight(each.weight).straight,
           {.accumulate = adds_itself || &each != &projections_.front()}, &d_x);
    FromRows(pass, x, d_input);
  }

  // Keys and values give gradients of all vectors, queries and the residual of those that
  // GetNewest() copied.
  void GradientThroughNewest(const BlockPass& pass, const BlockedMatrix& x,
                             const BlockedMatrix& d_output, BlockedMatrix* d_input) const {
    BlockedMatrix &d_x = pass.buffers[d_x_], &d_newest = pass.buffers[d_newest_];
    d_x.Reshape(x.rows(), dim_, Precision::kFloat32);
    d_newest.Reshape(d_output.rows(), dim_, Precision::kFloat32);
    for (const Projection& each : projections_)
      Gemm(pass.buffers[each.result], pass.parameters.weight(each.weight).straight,
           {.accumulate =
                &each == &projections_[0] + kValue || &each == &projections_[0] + kResidual},
           OfQueries(each) ? &d_newest : &d_x);
    const bool adds_itself = residual_ && !projects_residual();
    float *const row = pass.rows[row_].data(), *const d = row + dim_;
    ForEachSample(pass, x, [&](const SampleRows& sample) {
      if (sample.results == 0) return;
      d_x.GetRow(sample.newest(), 0, row, dim_);
      d_newest.GetRow(sample.first_result, 0, d, dim_);
      for (int64_t c = 0; c < dim_; ++c) row[c] += d[c];
      if (adds_itself) {
        d_output.GetRow(sample.first_result, 0, d, dim_);
        for (int64_t c = 0; c < dim_; ++c) row[c] += d[c];
      }
      d_x.SetRow(sample.newest(), 0, row, dim_);
    });
    FromRows(pass, x, d_input);
  }

  void FromRows(const BlockPass& pass, const BlockedMatrix& x, BlockedMatrix* d_input) const {
    const BlockedMatrix& d_x = pass.buffers[d_x_];
    if (sequence() && d_input->precision() == Precision::kFloat32) return Copy(d_x, d_input);
    float* const row = pass.rows[row_].data();
    ForEachSample(pass, x, [&](const SampleRows& sample) {
      for (int64_t v = 0; v < sample.used; ++v)
        d_x.GetRow(sample.first + v, 0, row + v * dim_, dim_);
      input_.Set(row, sample.sample, sample.first, sample.used, d_input);
    });
  }

  AttentionHeads heads_;
  SequenceInputOf input_;
  int64_t dim_;  // of the input
  bool residual_, relu_;
  std::vector<Projection> projections_;
  size_t x_ = 0, d_x_ = 0;            // buffers: the input's vectors as rows, and their gradient
  size_t newest_ = 0, d_newest_ = 0;  // the same of each sample's newest
  size_t values_;                     // row of one sample's AttentionValues
  size_t row_;                        // row of one sample
};

}  // namespace

void SelfAttention::Describe(ConfigFields& fields) {
  fields.Range("heads", &heads, 1, 256);
  fields.Range("dim", &dim, 0, 4096, "of what each head gives; 0: the input's dimension / heads");
  fields.Field("residual", &residual,
               "adds the input, projected unless it has heads * dim columns already");
  fields.Field("scale", &scale, "scores by 1 / sqrt(dim)");
  fields.Field("causal", &causal, "a vector attends only to those before it and itself");
  fields.Field("relu", &relu, "at the end");
}

std::unique_ptr<Block> SelfAttention::Make(const BlockPlace& place) const {
  place.positions();
  return std::make_unique<SelfAttentionBlock>(*this, place);
}

}  // namespace renzan
