#include "renzan/model/dlrm.h"

#include "renzan/model/dot_interaction.h"
#include "renzan/model/mlps.h"

namespace renzan {

struct Dlrm::Workspace : Model::Workspace {
  Mlp::Workspace bottom, top;
  AlignedBuffer interactions, d_interactions;  // [n, interaction_width]
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
  if (bottom_) workspace->bottom = bottom_->MakeWorkspace(n);
  workspace->top = top_->MakeWorkspace(n);
  workspace->interactions = AlignedBuffer(static_cast<size_t>(n * interaction_width_));
  workspace->d_interactions = AlignedBuffer(static_cast<size_t>(n * interaction_width_));
  return workspace;
}

void Dlrm::Forward(const float* parameters, int64_t n, Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  w.bottom.training = w.top.training = w.training;
  if (bottom_)
    bottom_->Forward(parameters, n, w.dense.data(), options_.num_dense, w.features.data(),
                     features_per_sample(), &w.bottom);
  DotInteractionForward(w.features.data(), n, vectors_, options_.embedding_dim,
                        w.interactions.data());
  top_->Forward(parameters, n, w.interactions.data(), interaction_width_, w.logits.data(), 1,
                &w.top);
}

void Dlrm::Backward(const float* parameters, int64_t n, float* gradients,
                    Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  top_->Backward(parameters, n, w.interactions.data(), interaction_width_, w.logits.data(), 1,
                 w.d_logits.data(), 1, gradients, w.d_interactions.data(), interaction_width_,
                 &w.top);
  DotInteractionBackward(w.features.data(), w.d_interactions.data(), n, vectors_,
                         options_.embedding_dim, w.d_features.data());
  if (bottom_)
    bottom_->Backward(parameters, n, w.dense.data(), options_.num_dense, w.features.data(),
                      features_per_sample(), w.d_features.data(), features_per_sample(), gradients,
                      nullptr, 0, &w.bottom);
}

}  // namespace renzan
