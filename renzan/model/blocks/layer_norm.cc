#include "renzan/model/blocks/layer_norm.h"

#include <fmt/format.h>

#include "renzan/base/config/config.h"
#include "renzan/base/trace.h"

namespace renzan {
namespace {

int64_t NormalizedColumns(const BlockPlace& place, bool per_vector) {
  const int64_t columns = per_vector ? place.DimOfAll() : ColumnsOf(place.input());
  // A single one would always become zero.
  if (columns < 2)
    place.Reject(fmt::format("normalizes two columns or more, but its input has {}",
                             Describe(place.input())));
  return columns;
}

}  // namespace

LayerNormalization::LayerNormalization(const LayerNorm& options, const BlockPlace& place,
                                       const std::string& prefix, int64_t width, int64_t columns,
                                       int64_t rows_per_sample)
    : epsilon_(static_cast<float>(options.epsilon)),
      width_(width),
      columns_(columns),
      gamma_(place.parameters.Add(prefix + ".gamma", {width_}, Initializer::kOne)),
      beta_(place.parameters.Add(prefix + ".beta", {width_}, Initializer::kZero)),
      d_gamma_(place.buffers.Add(width_, Precision::kFloat32, rows_per_sample)),
      d_beta_(place.buffers.Add(width_, Precision::kFloat32, rows_per_sample)),
      row_(place.buffers.AddRow(RowNormalizationScratch(columns_, width_))) {}

void LayerNormalization::Forward(const BlockPass& pass, const BlockedMatrix& x,
                                 BlockedMatrix* y) const {
  const TraceSpan span("layer norm");
  NormalizeRows(x, OptionsOf(pass), pass.rows[row_].data(), y);
}

void LayerNormalization::Backward(const BlockPass& pass, const BlockedMatrix& x,
                                  const BlockedMatrix& dy, WeightGradients* gradients,
                                  BlockedMatrix* dx) const {
  const TraceSpan span("layer norm");
  BlockedMatrix &d_gammas = pass.buffers[d_gamma_], &d_betas = pass.buffers[d_beta_];
  for (BlockedMatrix* each : {&d_gammas, &d_betas}) each->Reshape(x.rows(), width_);
  NormalizeRowsBackward(x, dy, OptionsOf(pass), pass.rows[row_].data(), &d_gammas, &d_betas, dx);
  gradients->AddVector(d_gammas, gamma_);
  gradients->AddVector(d_betas, beta_);
}

RowNormalization LayerNormalization::OptionsOf(const BlockPass& pass) const {
  return {.width = width_,
          .epsilon = epsilon_,
          .gamma = pass.parameters.vector(gamma_),
          .beta = pass.parameters.vector(beta_)};
}

void LayerNorm::Describe(ConfigFields& fields) {
  fields.Field("per_vector", &per_vector, "each vector by itself, instead of all columns at once");
  fields.Range("epsilon", &epsilon, 1e-12, 1, "added to the variance");
}

std::unique_ptr<Block> LayerNorm::Make(const BlockPlace& place) const {
  const int64_t width = NormalizedColumns(place, per_vector), columns = ColumnsOf(place.input());
  const auto sequence = per_vector ? place.SequenceOf(0) : std::nullopt;
  // Of a sequence each position is a row.
  return MakeNormalizationBlock(place,
                                std::make_unique<LayerNormalization>(
                                    *this, place, place.name, width, sequence ? width : columns,
                                    sequence ? columns / width : 1),
                                sequence);
}

}  // namespace renzan
