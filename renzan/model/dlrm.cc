#include "renzan/model/dlrm.h"

#include <algorithm>

#include "renzan/base/trace.h"
#include "renzan/model/dot_interaction.h"
#include "renzan/model/mlps.h"

namespace renzan {

struct Dlrm::Workspace : Model::Workspace {
  Mlp::Workspace bottom, top;
  Projections::Workspace projected;
  BlockedMatrix interactions, d_interactions;  // [n, interaction width]
  BlockedMatrix d_bottom;                      // [n, dim]
  BlockedMatrix d_top;                         // [n, 1]
};

Dlrm::Dlrm(const ModelOptions& options)
    : Model(options),
      vectors_(1 + std::ssize(options.tables)),
      interaction_width_(DotInteractionWidth(vectors_, options.embedding_dim)),
      bottom_(MakeBottomMlp(options, &layout_)),
      projections_(options, &layout_),
      top_(MakeTopMlp(options, interaction_width_, &layout_)) {}

std::unique_ptr<Model::Workspace> Dlrm::MakeWorkspace(int64_t n) const {
  auto workspace = std::make_unique<Workspace>();
  InitializeWorkspace(n, workspace.get());
  if (bottom_) workspace->bottom = bottom_->MakeWorkspace(n, options_.precision);
  if (!projections_.empty())
    workspace->projected = projections_.MakeWorkspace(n, options_.precision);
  workspace->top = top_->MakeWorkspace(n, options_.precision);
  workspace->interactions.Reshape(n, interaction_width_, options_.precision);
  workspace->d_interactions.Reshape(n, interaction_width_, options_.precision);
  workspace->d_bottom.Reshape(n, options_.embedding_dim, options_.precision);
  workspace->d_top.Reshape(n, 1, options_.precision);
  return workspace;
}

std::vector<int64_t> Dlrm::WorkspaceColumns() const {
  const ModelOptions& m = options_;
  std::vector<int64_t> columns = ColumnsOfInputs(m);
  int64_t projected = 0, widest = 0;  // columns
  for (const TableInput& table : m.tables) {
    if (table.dim == m.embedding_dim) continue;
    projected += table.dim;
    widest = std::max(widest, table.dim);
  }
  if (projected > 0) {
    const int64_t all = vectors_ * m.embedding_dim;
    columns.insert(columns.end(), {all, all, projected, widest, m.embedding_dim});
  }
  columns.insert(columns.end(), 2, interaction_width_);
  AddMlpColumns(interaction_width_, m.top_mlp, 1, &columns);
  return columns;
}

double Dlrm::InteractionFlops() const {
  // Forward, one product for each pair of vectors; backward, each vector gets a multiple of every
  // other one.
  const double f = static_cast<double>(vectors_);
  return 3 * f * (f - 1) * static_cast<double>(options_.embedding_dim);
}

double Dlrm::InteractionValuesOnGpu() const { return 2 * static_cast<double>(interaction_width_); }

void Dlrm::Forward(const PackedParameters& parameters, Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  w.bottom.training = w.top.training = w.training;
  if (bottom_) {
    bottom_->Forward(parameters, w.dense, &w.bottom);
    w.features.SetColumns(0, w.bottom.output(), 0, options_.embedding_dim);
  }
  if (!projections_.empty()) projections_.Forward(parameters, w.features, &w.projected);
  {
    const TraceSpan span("dot interaction");
    DotInteractionForward(projections_.empty() ? w.features : w.projected.vectors, vectors_,
                          options_.embedding_dim, &w.interactions);
  }
  top_->Forward(parameters, w.interactions, &w.top);
  ReadLogits(w.top, &w.logits);
}

void Dlrm::Backward(const PackedParameters& parameters, WeightGradients* gradients,
                    Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  WriteLogitGradient(w.d_logits, &w.d_top);
  top_->Backward(parameters, w.interactions, &w.d_top, gradients, &w.d_interactions, &w.top);
  {
    const TraceSpan span("dot interaction");
    const bool one_dim = projections_.empty();
    DotInteractionBackward(one_dim ? w.features : w.projected.vectors, w.d_interactions, vectors_,
                           options_.embedding_dim,
                           one_dim ? &w.d_features : &w.projected.d_vectors);
  }
  if (!projections_.empty())
    projections_.Backward(parameters, gradients, &w.projected, &w.d_features);
  if (!bottom_) return;
  w.d_bottom.SetColumns(0, w.d_features, 0, options_.embedding_dim);
  bottom_->Backward(parameters, w.dense, &w.d_bottom, gradients, nullptr, &w.bottom);
}

}  // namespace renzan
