#pragma once

// Projects rows where tables of several embedding dimensions meet a model that needs one: vector =
// W · row, with a learned W [dim, the table's dim] and no bias. Ginart et al., "Mixed Dimension
// Embeddings with Application to Memory-Efficient Recommendation Systems", 2019. Like Mlp it only
// holds sizes and offsets: thread-safe.

#include <cstdint>
#include <vector>

#include "renzan/model/model.h"
#include "renzan/nn/packed_parameters.h"
#include "renzan/nn/parameters.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class Projections {
 public:
  // Registers "projection.<table>.weight" for each table whose dimension differs from
  // embedding_dim.
  Projections(const ModelOptions& options, ParameterLayout* layout);

  // Whether no table needs a projection. Then the functions below must not be called.
  bool empty() const { return empty_; }

  struct Workspace {
    BlockedMatrix vectors;            // [n, (1 + tables)·dim]
    BlockedMatrix d_vectors;          // input of Backward: like `vectors`
    std::vector<BlockedMatrix> rows;  // of each projected table, [n, its dim]
    BlockedMatrix d_rows;             // of one of them
    BlockedMatrix vector;             // of one of them, [n, dim]; also its gradient
  };
  Workspace MakeWorkspace(int64_t n, Precision precision) const;

  // features [n, dim + Σ dim of the tables] -> workspace->vectors.
  void Forward(const PackedParameters& parameters, const BlockedMatrix& features,
               Workspace* workspace) const;

  // After Forward: workspace->d_vectors -> gradients and d_features, like `features` (both
  // written).
  void Backward(const PackedParameters& parameters, WeightGradients* gradients,
                Workspace* workspace, BlockedMatrix* d_features) const;

 private:
  // A feature vector's columns in the features, and the offset of its weight if it is projected.
  struct Vector {
    int64_t column, dim, weight;
    bool projected;
  };
  int64_t dim_;
  std::vector<Vector> vectors_;
  bool empty_ = true;
};

}  // namespace renzan
