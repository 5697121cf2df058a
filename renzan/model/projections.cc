#include "renzan/model/projections.h"

#include <algorithm>

#include "renzan/base/trace.h"
#include "renzan/nn/gemm.h"

namespace renzan {

Projections::Projections(const ModelOptions& options, ParameterLayout* layout)
    : dim_(options.embedding_dim),
      vectors_{{.column = 0, .dim = dim_, .weight = 0, .projected = false}} {
  int64_t column = dim_;
  for (const TableInput& table : options.tables) {
    Vector vector{.column = column, .dim = table.dim, .weight = 0, .projected = table.dim != dim_};
    if (vector.projected) {
      vector.weight = layout->Add("projection." + table.name + ".weight", {dim_, table.dim},
                                  Initializer::kXavierNormal);
      empty_ = false;
    }
    vectors_.push_back(vector);
    column += table.dim;
  }
}

Projections::Workspace Projections::MakeWorkspace(int64_t n, Precision precision) const {
  Workspace workspace;
  workspace.vectors.Reshape(n, std::ssize(vectors_) * dim_, precision);
  workspace.d_vectors.Reshape(n, std::ssize(vectors_) * dim_, precision);
  workspace.vector.Reshape(n, dim_, precision);
  int64_t widest = 0;
  for (const Vector& vector : vectors_) {
    if (!vector.projected) continue;
    workspace.rows.emplace_back(n, vector.dim, precision);
    widest = std::max(widest, vector.dim);
  }
  workspace.d_rows.Reshape(n, widest, precision);
  return workspace;
}

void Projections::Forward(const PackedParameters& parameters, const BlockedMatrix& features,
                          Workspace* workspace) const {
  const TraceSpan span("projections");
  auto rows = workspace->rows.begin();
  for (size_t i = 0; i < vectors_.size(); ++i) {
    const Vector& vector = vectors_[i];
    const int64_t to = static_cast<int64_t>(i) * dim_;
    if (!vector.projected) {
      workspace->vectors.SetColumns(to, features, vector.column, dim_);
      continue;
    }
    rows->SetColumns(0, features, vector.column, vector.dim);
    Gemm(*rows++, parameters.weight(vector.weight).transposed, {}, &workspace->vector);
    workspace->vectors.SetColumns(to, workspace->vector, 0, dim_);
  }
}

void Projections::Backward(const PackedParameters& parameters, WeightGradients* gradients,
                           Workspace* workspace, BlockedMatrix* d_features) const {
  const TraceSpan span("projections");
  auto rows = workspace->rows.begin();
  for (size_t i = 0; i < vectors_.size(); ++i) {
    const Vector& vector = vectors_[i];
    const int64_t from = static_cast<int64_t>(i) * dim_;
    if (!vector.projected) {
      d_features->SetColumns(vector.column, workspace->d_vectors, from, dim_);
      continue;
    }
    BlockedMatrix& d_vector = workspace->vector;
    BlockedMatrix& d_rows = workspace->d_rows;
    d_vector.SetColumns(0, workspace->d_vectors, from, dim_);
    gradients->Add(d_vector, *rows++, vector.weight, std::nullopt);
    d_rows.Reshape(d_rows.rows(), vector.dim, d_rows.precision());
    Gemm(d_vector, parameters.weight(vector.weight).straight, {}, &d_rows);
    d_features->SetColumns(vector.column, d_rows, 0, vector.dim);
  }
}

}  // namespace renzan
