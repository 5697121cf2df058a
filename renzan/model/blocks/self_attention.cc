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
    x_ = AddVectors(place, dim_, place.buffers.precision());
    if (place.d_inputs) d_x_ = AddVectors(place, dim_, Precision::kFloat32);
    values_ = place.buffers.ShareRow(7 * heads_.columns() + heads_.scratch());
    row_ = place.buffers.AddRow(std::max(heads_.vectors * heads_.width(), dim_));
  }

  double Flops(bool d_inputs) const override {
    const int64_t columns = heads_.vectors * heads_.width();
    const double products = static_cast<double>(heads_.vectors * columns);
    const double weights = static_cast<double>(std::ssize(projections_) * dim_ * columns);
    return 12 * products + (d_inputs ? 6 : 4) * weights;
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("self attention");
    BlockedMatrix& x = pass.buffers[x_];
    for (int64_t i = 0; i < output->rows(); ++i)
      for (int64_t v = 0; v < heads_.vectors; ++v)
        x.CopyRow(i * heads_.vectors + v, 0, *inputs.front(), i, v * dim_, dim_);
    for (const Projection& each : projections_)
      Gemm(x, pass.parameters.weight(each.weight).transposed, {}, &pass.buffers[each.result]);
    const AttentionValues values = Values(pass);
    for (int64_t i = 0; i < output->rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i);
      GetProjections(pass, i, used, values);
      heads_.Forward(values, used);
      if (residual_) AddResidual(pass, i, used, values);
      if (relu_)
        for (int64_t c = 0; c < used * heads_.stride(); ++c)
          values.output[c] = values.output[c] < 0 ? 0 : values.output[c];  // NaN stays NaN
      heads_.Set(values.output, used, InSample(i), output);
    }
  }

  // The projections' results become their gradients.
  void Backward(const BlockPass& pass, Inputs, const BlockedMatrix& output, BlockedMatrix* d_output,
                WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("self attention");
    if (relu_) ReluBackward(output, d_output);
    input_.ZeroUnused(pass, d_output);
    const AttentionValues values = Values(pass);
    for (int64_t i = 0; i < output.rows(); ++i) {
      const int64_t used = input_.LengthOf(pass, i);
      GetProjections(pass, i, used, values);
      heads_.Get(*d_output, InSample(i), used, values.output);
      heads_.Backward(values, used);
      const auto set = [&](size_t projection, const float* from) {
        heads_.Set(from, used, AsRows(i), &pass.buffers[projections_[projection].result]);
      };
      set(kQuery, values.d_query);
      set(kKey, values.d_key);
      set(kValue, values.d_value);
      if (projects_residual()) set(kResidual, values.output);
    }
    for (const Projection& each : projections_)
      gradients->Add(pass.buffers[each.result], pass.buffers[x_], each.weight, std::nullopt);
    if (d_inputs.front() != nullptr) InputGradient(pass, *d_output, d_inputs.front());
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

  // A sample's vectors in the output, and in a matrix with a row for each.
  VectorsAt InSample(int64_t sample) const {
    return {.row = sample, .column = 0, .row_step = 0, .column_step = heads_.width()};
  }
  VectorsAt AsRows(int64_t sample) const {
    return {.row = sample * heads_.vectors, .column = 0, .row_step = 1, .column_step = 0};
  }
  void GetProjections(const BlockPass& pass, int64_t sample, int64_t used,
                      const AttentionValues& values) const {
    const auto get = [&](size_t projection, float* to) {
      heads_.Get(pass.buffers[projections_[projection].result], AsRows(sample), used, to);
    };
    get(kQuery, values.query);
    get(kKey, values.key);
    get(kValue, values.value);
  }

  // To the heads' output, which the values of queries no longer matter for.
  void AddResidual(const BlockPass& pass, int64_t sample, int64_t used,
                   const AttentionValues& values) const {
    float* const residual = values.query;
    const size_t from = projects_residual() ? projections_[kResidual].result : x_;
    heads_.Get(pass.buffers[from], AsRows(sample), used, residual);
    for (int64_t c = 0; c < used * heads_.stride(); ++c) values.output[c] += residual[c];
  }

  void InputGradient(const BlockPass& pass, const BlockedMatrix& d_output,
                     BlockedMatrix* d_input) const {
    BlockedMatrix& d_x = pass.buffers[d_x_];
    float* const row = pass.rows[row_].data();
    const int64_t samples = d_output.rows();
    const bool adds_itself = residual_ && !projects_residual();
    for (int64_t i = 0; adds_itself && i < samples; ++i) {
      d_output.GetRow(i, 0, row, heads_.vectors * dim_);
      for (int64_t v = 0; v < heads_.vectors; ++v)
        d_x.SetRow(i * heads_.vectors + v, 0, row + v * dim_, dim_);
    }
    for (const Projection& each : projections_)
      Gemm(pass.buffers[each.result], pass.parameters.weight(each.weight).straight,
           {.accumulate = adds_itself || &each != &projections_.front()}, &d_x);
    for (int64_t r = 0; r < d_x.rows(); ++r) {
      d_x.GetRow(r, 0, row, dim_);
      d_input->SetRow(r / heads_.vectors, r % heads_.vectors * dim_, row, dim_);
    }
  }

  AttentionHeads heads_;
  SequenceInputOf input_;
  int64_t dim_;  // of the input
  bool residual_, relu_;
  std::vector<Projection> projections_;
  size_t x_, d_x_ = 0;  // buffers: the input's vectors as rows, and their gradient
  size_t values_;       // row of one sample's AttentionValues
  size_t row_;          // row of one sample
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
