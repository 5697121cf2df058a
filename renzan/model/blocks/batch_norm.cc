#include "renzan/model/blocks/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/nn/normalize_columns.h"

namespace renzan {
BatchNormalization::BatchNormalization(const BatchNorm& options, const BlockPlace& place,
                                       const std::string& prefix, int64_t columns)
    : options_(options),
      columns_(columns),
      row_(place.buffers.AddRow(5 * columns)),
      moments_(place.buffers.AddRow(2 * columns * int64_t{sizeof(double) / sizeof(float)})) {
  ParameterLayout& parameters = place.parameters;
  if (options.affine) {
    gamma_ = parameters.Add(prefix + ".gamma", {columns}, Initializer::kOne);
    beta_ = parameters.Add(prefix + ".beta", {columns}, Initializer::kZero);
    gradients_ = place.buffers.Add(columns, Precision::kFloat32);
  }
  mean_ = parameters.AddStatistic(prefix + ".running_mean", columns, Initializer::kZero,
                                  options.momentum);
  variance_ = parameters.AddStatistic(prefix + ".running_var", columns, Initializer::kOne,
                                      options.momentum);
}

BatchNormalization::Columns BatchNormalization::ColumnsOfPass(const BlockPass& pass) const {
  float* const row = pass.rows[row_].data();
  return {.mean = row,
          .scale = row + columns_,
          .variance = row + 2 * columns_,
          .d_gamma = row + 3 * columns_,
          .d_beta = row + 4 * columns_};
}

void BatchNormalization::Observe(const BlockPass& pass, const BlockedMatrix& x,
                                 const Columns& columns) const {
  const double n = static_cast<double>(x.rows());
  double* const means = reinterpret_cast<double*>(pass.rows[moments_].data());
  double* const squares = means + columns_;
  ColumnMoments(x, means, squares);
  for (int64_t c = 0; c < columns_; ++c) {
    columns.mean[c] = static_cast<float>(means[c]);
    columns.scale[c] = static_cast<float>(1 / std::sqrt(squares[c] / n + options_.epsilon));
    columns.variance[c] = static_cast<float>(squares[c] / (n - 1));
  }
}

ColumnScales BatchNormalization::ScalesOf(const BlockPass& pass, const Columns& columns) const {
  return {.mean = columns.mean,
          .scale = columns.scale,
          .gamma = options_.affine ? pass.parameters.vector(gamma_) : nullptr,
          .beta = options_.affine ? pass.parameters.vector(beta_) : nullptr};
}

void BatchNormalization::Forward(const BlockPass& pass, const BlockedMatrix& x,
                                 BlockedMatrix* y) const {
  const TraceSpan span("batch norm");
  const Columns columns = ColumnsOfPass(pass);
  if (pass.training) {
    CHECK(x.rows() > 1);
    Observe(pass, x, columns);
  } else {
    const float* const variance = pass.parameters.vector(variance_.running);
    std::copy_n(pass.parameters.vector(mean_.running), columns_, columns.mean);
    for (int64_t c = 0; c < columns_; ++c)
      columns.scale[c] = static_cast<float>(1 / std::sqrt(double{variance[c]} + options_.epsilon));
  }
  NormalizeColumns(x, ScalesOf(pass, columns), y);
}

void BatchNormalization::Backward(const BlockPass& pass, const BlockedMatrix& x,
                                  const BlockedMatrix& dy, WeightGradients* gradients,
                                  BlockedMatrix* dx) const {
  const TraceSpan span("batch norm");
  const Columns columns = ColumnsOfPass(pass);
  NormalizeColumnsBackward(x, dy, ScalesOf(pass, columns), columns.d_gamma, columns.d_beta, dx);
  gradients->SetStatistic(columns.mean, columns_, mean_);
  gradients->SetStatistic(columns.variance, columns_, variance_);
  if (!options_.affine) return;
  BlockedMatrix& row = pass.buffers[gradients_];
  row.Reshape(1, columns_);
  row.SetRow(0, 0, columns.d_gamma, columns_);
  gradients->AddVector(row, gamma_);
  row.SetRow(0, 0, columns.d_beta, columns_);
  gradients->AddVector(row, beta_);
}

void BatchNorm::Describe(ConfigFields& fields) {
  fields.Range("epsilon", &epsilon, 1e-12, 1, "added to the variance");
  fields.Range("momentum", &momentum, 1e-6, 1,
               "the share of a step in the running statistics, which all but training uses");
  fields.Field("affine", &affine, "has a factor and a summand for each column");
}

std::unique_ptr<Block> BatchNorm::Make(const BlockPlace& place) const {
  return MakeNormalizationBlock(place, std::make_unique<BatchNormalization>(
                                           *this, place, place.name, ColumnsOf(place.input())));
}

}  // namespace renzan
