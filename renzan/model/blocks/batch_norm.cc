#include "renzan/model/blocks/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"

namespace renzan {
namespace {

// Columns that are read and written at once, of all rows.
constexpr int64_t kColumnsAtOnce = 2 * BlockedMatrix::kLanes;

template <typename Body>
void ForColumns(int64_t columns, const Body& body) {
  for (int64_t first = 0; first < columns; first += kColumnsAtOnce)
    body(first, std::min(kColumnsAtOnce, columns - first));
}

}  // namespace

BatchNormalization::BatchNormalization(const BatchNorm& options, const BlockPlace& place,
                                       const std::string& prefix, int64_t columns)
    : options_(options), columns_(columns), row_(place.buffers.AddRow(5 * columns)) {
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

// Sums in float64 and in the order of the rows.
void BatchNormalization::Observe(const BlockedMatrix& x, const Columns& columns) const {
  const double n = static_cast<double>(x.rows());
  ForColumns(columns_, [&](int64_t first, int64_t count) {
    float values[kColumnsAtOnce];
    double mean[kColumnsAtOnce] = {}, squares[kColumnsAtOnce] = {};
    for (int64_t row = 0; row < x.rows(); ++row) {
      x.GetRow(row, first, values, count);
      for (int64_t c = 0; c < count; ++c) mean[c] += double{values[c]};
    }
    for (int64_t c = 0; c < count; ++c) mean[c] /= n;
    for (int64_t row = 0; row < x.rows(); ++row) {
      x.GetRow(row, first, values, count);
      for (int64_t c = 0; c < count; ++c) {
        const double distance = double{values[c]} - mean[c];
        squares[c] += distance * distance;
      }
    }
    for (int64_t c = 0; c < count; ++c) {
      columns.mean[first + c] = static_cast<float>(mean[c]);
      columns.scale[first + c] =
          static_cast<float>(1 / std::sqrt(squares[c] / n + options_.epsilon));
      columns.variance[first + c] = static_cast<float>(squares[c] / (n - 1));
    }
  });
}

void BatchNormalization::Forward(const BlockPass& pass, const BlockedMatrix& x,
                                 BlockedMatrix* y) const {
  const TraceSpan span("batch norm");
  const Columns columns = ColumnsOfPass(pass);
  if (pass.training) {
    CHECK(x.rows() > 1);
    Observe(x, columns);
  } else {
    const float* const variance = pass.parameters.vector(variance_.running);
    std::copy_n(pass.parameters.vector(mean_.running), columns_, columns.mean);
    for (int64_t c = 0; c < columns_; ++c)
      columns.scale[c] = static_cast<float>(1 / std::sqrt(double{variance[c]} + options_.epsilon));
  }
  const float* const gamma = options_.affine ? pass.parameters.vector(gamma_) : nullptr;
  const float* const beta = options_.affine ? pass.parameters.vector(beta_) : nullptr;
  ForColumns(columns_, [&](int64_t first, int64_t count) {
    float values[kColumnsAtOnce];
    for (int64_t row = 0; row < x.rows(); ++row) {
      x.GetRow(row, first, values, count);
      for (int64_t i = 0, c = first; i < count; ++i, ++c) {
        values[i] = (values[i] - columns.mean[c]) * columns.scale[c];
        if (gamma != nullptr) values[i] = gamma[c] * values[i] + beta[c];
      }
      y->SetRow(row, first, values, count);
    }
  });
}

void BatchNormalization::Backward(const BlockPass& pass, const BlockedMatrix& x,
                                  const BlockedMatrix& dy, WeightGradients* gradients,
                                  BlockedMatrix* dx) const {
  const TraceSpan span("batch norm");
  const Columns columns = ColumnsOfPass(pass);
  const float* const gamma = options_.affine ? pass.parameters.vector(gamma_) : nullptr;
  const double n = static_cast<double>(x.rows());
  ForColumns(columns_, [&](int64_t first, int64_t count) {
    float values[kColumnsAtOnce], d[kColumnsAtOnce];
    double sums[kColumnsAtOnce] = {}, products[kColumnsAtOnce] = {};
    const auto read = [&](int64_t row) {
      x.GetRow(row, first, values, count);
      dy.GetRow(row, first, d, count);
      for (int64_t i = 0, c = first; i < count; ++i, ++c)
        values[i] = (values[i] - columns.mean[c]) * columns.scale[c];
    };
    for (int64_t row = 0; row < x.rows(); ++row) {
      read(row);
      for (int64_t i = 0; i < count; ++i) {
        sums[i] += double{d[i]};
        products[i] += double{d[i]} * double{values[i]};
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      columns.d_gamma[first + i] = static_cast<float>(products[i]);
      columns.d_beta[first + i] = static_cast<float>(sums[i]);
    }
    if (dx == nullptr) return;
    for (int64_t row = 0; row < x.rows(); ++row) {
      read(row);
      for (int64_t i = 0, c = first; i < count; ++i, ++c)
        d[i] = (gamma != nullptr ? gamma[c] * columns.scale[c] : columns.scale[c]) *
               (d[i] - static_cast<float>(sums[i] / n) -
                values[i] * static_cast<float>(products[i] / n));
      dx->SetRow(row, first, d, count);
    }
  });
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
