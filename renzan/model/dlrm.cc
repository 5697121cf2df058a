#include "renzan/model/dlrm.h"

#include "renzan/base/trace.h"
#include "renzan/model/dot_interaction.h"
#include "renzan/model/mlps.h"

namespace renzan {

struct Dlrm::Workspace : Model::Workspace {
  Mlp::Workspace bottom, top;
  BlockedMatrix interactions, d_interactions;  // [n, interaction width]
  BlockedMatrix d_bottom;                      // [n, dim]
  BlockedMatrix d_top;                         // [n, 1]
};

Dlrm::Dlrm(const ModelOptions& options)
    : Model(options),
      vectors_(1 + options.num_tables),
      interaction_width_(DotInteractionWidth(vectors_, options.embedding_dim)),
      bottom_(MakeBottomMlp(options, &layout_)),
      top_(MakeTopMlp(options, interaction_width_, &layout_)) {}

std::unique_ptr<Model::Workspace> Dlrm::MakeWorkspace(int64_t n) const {
  auto workspace = std::make_unique<Workspace>();
  InitializeWorkspace(n, workspace.get());
  if (bottom_) workspace->bottom = bottom_->MakeWorkspace(n, options_.precision);
  workspace->top = top_->MakeWorkspace(n, options_.precision);
  workspace->interactions.Reshape(n, interaction_width_, options_.precision);
  workspace->d_interactions.Reshape(n, interaction_width_, options_.precision);
  workspace->d_bottom.Reshape(n, options_.embedding_dim, options_.precision);
  workspace->d_top.Reshape(n, 1, options_.precision);
  return workspace;
}

void Dlrm::Forward(const PackedParameters& parameters, Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  w.bottom.training = w.top.training = w.training;
  if (bottom_) {
    bottom_->Forward(parameters, w.dense, &w.bottom);
    w.features.SetColumns(0, w.bottom.output(), 0, options_.embedding_dim);
  }
  {
    const TraceSpan span("dot interaction");
    DotInteractionForward(w.features, vectors_, options_.embedding_dim, &w.interactions);
  }
  top_->Forward(parameters, w.interactions, &w.top);
  ReadLogits(w.top, &w.logits);
}

void Dlrm::Backward(const PackedParameters& parameters, float* gradients,
                    Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  WriteLogitGradient(w.d_logits, &w.d_top);
  top_->Backward(parameters, w.interactions, &w.d_top, gradients, &w.d_interactions, &w.top);
  {
    const TraceSpan span("dot interaction");
    DotInteractionBackward(w.features, w.d_interactions, vectors_, options_.embedding_dim,
                           &w.d_features);
  }
  if (!bottom_) return;
  w.d_bottom.SetColumns(0, w.d_features, 0, options_.embedding_dim);
  bottom_->Backward(parameters, w.dense, &w.d_bottom, gradients, nullptr, &w.bottom);
}

}  // namespace renzan
