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

class LayerNormBlock final : public Block {
 public:
  LayerNormBlock(const LayerNorm& options, const BlockPlace& place)
      : Block(place.input()),
        epsilon_(static_cast<float>(options.epsilon)),
        width_(NormalizedColumns(place, options.per_vector)),
        columns_(ColumnsOf(place.input())),
        gamma_(place.parameters.Add(place.name + ".gamma", {width_}, Initializer::kOne)),
        beta_(place.parameters.Add(place.name + ".beta", {width_}, Initializer::kZero)),
        d_gamma_(place.buffers.Add(width_, Precision::kFloat32)),
        d_beta_(place.buffers.Add(width_, Precision::kFloat32)),
        row_(place.buffers.AddRow(2 * (columns_ + width_))) {}

  double Flops(bool) const override { return 20 * static_cast<double>(columns_); }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("layer norm");
    const float* const gamma = pass.parameters.vector(gamma_);
    const float* const beta = pass.parameters.vector(beta_);
    float* const x = pass.rows[row_].data();
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns_);
      for (float* part = x; part != x + columns_; part += width_) {
        Normalize(part);
        for (int64_t c = 0; c < width_; ++c) part[c] = gamma[c] * part[c] + beta[c];
      }
      output->SetRow(i, 0, x, columns_);
    }
  }

  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients* gradients,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("layer norm");
    const float* const gamma = pass.parameters.vector(gamma_);
    BlockedMatrix &d_gammas = pass.buffers[d_gamma_], &d_betas = pass.buffers[d_beta_];
    float* const x = pass.rows[row_].data();
    float *const dy = x + columns_, *const d_gamma = dy + columns_,
                 *const d_beta = d_gamma + width_;
    for (int64_t i = 0; i < output.rows(); ++i) {
      inputs.front()->GetRow(i, 0, x, columns_);
      d_output->GetRow(i, 0, dy, columns_);
      std::fill_n(d_gamma, 2 * width_, 0.0f);
      for (int64_t first = 0; first < columns_; first += width_) {
        float *const part = x + first, *const d_part = dy + first;
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
      if (d_inputs.front() != nullptr) d_inputs.front()->SetRow(i, 0, dy, columns_);
    }
    gradients->AddVector(d_gammas, gamma_);
    gradients->AddVector(d_betas, beta_);
  }

 private:
  // Of width_ values; returns what they were multiplied by.
  float Normalize(float* x) const {
    const float n = static_cast<float>(width_);
    float sum = 0, squares = 0;
    for (int64_t c = 0; c < width_; ++c) sum += x[c];
    for (int64_t c = 0; c < width_; ++c) x[c] -= sum / n;
    for (int64_t c = 0; c < width_; ++c) squares += x[c] * x[c];
    const float scale = 1 / std::sqrt(squares / n + epsilon_);
    for (int64_t c = 0; c < width_; ++c) x[c] *= scale;
    return scale;
  }

  // From the gradient of the normalized values to that of the values before.
  void ThroughNormalize(const float* normalized, float scale, float* d) const {
    const float n = static_cast<float>(width_);
    float sum = 0, product = 0;
    for (int64_t c = 0; c < width_; ++c) {
      sum += d[c];
      product += d[c] * normalized[c];
    }
    for (int64_t c = 0; c < width_; ++c)
      d[c] = scale * (d[c] - sum / n - normalized[c] * (product / n));
  }

  float epsilon_;
  int64_t width_, columns_;  // what is normalized at once; all of a sample
  int64_t gamma_, beta_;     // offsets of the parameters
  size_t d_gamma_, d_beta_;  // buffers of each sample's part
  size_t row_;               // of a sample: x and dy, and what it adds to those
};

}  // namespace

void LayerNorm::Describe(ConfigFields& fields) {
  fields.Field("per_vector", &per_vector, "each vector by itself, instead of all columns at once");
  fields.Range("epsilon", &epsilon, 1e-12, 1, "added to the variance");
}

std::unique_ptr<Block> LayerNorm::Make(const BlockPlace& place) const {
  return std::make_unique<LayerNormBlock>(*this, place);
}

}  // namespace renzan
