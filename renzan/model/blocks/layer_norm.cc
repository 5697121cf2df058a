#include "renzan/model/blocks/layer_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
                                       const std::string& prefix, int64_t width, int64_t columns)
    : epsilon_(static_cast<float>(options.epsilon)),
      width_(width),
      columns_(columns),
      gamma_(place.parameters.Add(prefix + ".gamma", {width_}, Initializer::kOne)),
      beta_(place.parameters.Add(prefix + ".beta", {width_}, Initializer::kZero)),
      d_gamma_(place.buffers.Add(width_, Precision::kFloat32)),
      d_beta_(place.buffers.Add(width_, Precision::kFloat32)),
      row_(place.buffers.AddRow(2 * (columns_ + width_))) {}

void LayerNormalization::Forward(const BlockPass& pass, const BlockedMatrix& x,
                                 BlockedMatrix* y) const {
  const TraceSpan span("layer norm");
  const float* const gamma = pass.parameters.vector(gamma_);
  const float* const beta = pass.parameters.vector(beta_);
  float* const row = pass.rows[row_].data();
  for (int64_t i = 0; i < y->rows(); ++i) {
    x.GetRow(i, 0, row, columns_);
    for (float* part = row; part != row + columns_; part += width_) {
      Normalize(part);
      for (int64_t c = 0; c < width_; ++c) part[c] = gamma[c] * part[c] + beta[c];
    }
    y->SetRow(i, 0, row, columns_);
  }
}

void LayerNormalization::Backward(const BlockPass& pass, const BlockedMatrix& x,
                                  const BlockedMatrix& dy, WeightGradients* gradients,
                                  BlockedMatrix* dx) const {
  const TraceSpan span("layer norm");
  const float* const gamma = pass.parameters.vector(gamma_);
  BlockedMatrix &d_gammas = pass.buffers[d_gamma_], &d_betas = pass.buffers[d_beta_];
  float* const row = pass.rows[row_].data();
  float *const d = row + columns_, *const d_gamma = d + columns_, *const d_beta = d_gamma + width_;
  for (int64_t i = 0; i < x.rows(); ++i) {
    x.GetRow(i, 0, row, columns_);
    dy.GetRow(i, 0, d, columns_);
    std::fill_n(d_gamma, 2 * width_, 0.0f);
    for (int64_t first = 0; first < columns_; first += width_) {
      float *const part = row + first, *const d_part = d + first;
      const float scale = Normalize(part);
      for (int64_t c = 0; c < width_; ++c) {
        d_gamma[c] += d_part[c] * part[c];
        d_beta[c] += d_part[c];
        d_part[c] *= gamma[c];
      }
      ThroughNormalize(part, scale, d_part);
    }
    d_gammas.SetRow(i, 0, d_gamma, width_);
    d_betas.SetRow(i, 0, d_beta, width_);
    if (dx != nullptr) dx->SetRow(i, 0, d, columns_);
  }
  gradients->AddVector(d_gammas, gamma_);
  gradients->AddVector(d_betas, beta_);
}

float LayerNormalization::Normalize(float* x) const {
  const float n = static_cast<float>(width_);
  float sum = 0, squares = 0;
  for (int64_t c = 0; c < width_; ++c) sum += x[c];
  for (int64_t c = 0; c < width_; ++c) x[c] -= sum / n;
  for (int64_t c = 0; c < width_; ++c) squares += x[c] * x[c];
  const float scale = 1 / std::sqrt(squares / n + epsilon_);
  for (int64_t c = 0; c < width_; ++c) x[c] *= scale;
  return scale;
}

void LayerNormalization::ThroughNormalize(const float* normalized, float scale, float* d) const {
  const float n = static_cast<float>(width_);
  float sum = 0, product = 0;
  for (int64_t c = 0; c < width_; ++c) {
    sum += d[c];
    product += d[c] * normalized[c];
  }
  for (int64_t c = 0; c < width_; ++c)
    d[c] = scale * (d[c] - sum / n - normalized[c] * (product / n));
}

void LayerNorm::Describe(ConfigFields& fields) {
  fields.Field("per_vector", &per_vector, "each vector by itself, instead of all columns at once");
  fields.Range("epsilon", &epsilon, 1e-12, 1, "added to the variance");
}

std::unique_ptr<Block> LayerNorm::Make(const BlockPlace& place) const {
  return MakeNormalizationBlock(
      place,
      std::make_unique<LayerNormalization>(
          *this, place, place.name, NormalizedColumns(place, per_vector), ColumnsOf(place.input())),
      per_vector ? place.SequenceOf(0) : std::nullopt);
}

}  // namespace renzan
