#include "renzan/model/dlrm_dcnv2.h"

#include "renzan/model/mlps.h"

namespace renzan {

struct DlrmDcnV2::Workspace : Model::Workspace {
  Mlp::Workspace bottom, top;
  LowRankCross::Workspace cross;
  AlignedBuffer crossed, d_crossed;  // [n, features_per_sample]
};

DlrmDcnV2::DlrmDcnV2(const ModelOptions& options)
    : Model(options),
      bottom_(MakeBottomMlp(options, &layout_)),
      cross_(features_per_sample(), options.cross_rank, options.cross_layers, &layout_),
      top_(MakeTopMlp(options, features_per_sample(), &layout_)) {}

std::unique_ptr<Model::Workspace> DlrmDcnV2::MakeWorkspace(int64_t n) const {
  auto workspace = std::make_unique<Workspace>();
  InitializeWorkspace(n, workspace.get());
  if (bottom_) workspace->bottom = bottom_->MakeWorkspace(n);
  workspace->top = top_->MakeWorkspace(n);
  workspace->cross = cross_.MakeWorkspace(n);
  workspace->crossed = AlignedBuffer(static_cast<size_t>(n * features_per_sample()));
  workspace->d_crossed = AlignedBuffer(static_cast<size_t>(n * features_per_sample()));
  return workspace;
}

void DlrmDcnV2::Forward(const float* parameters, int64_t n, Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  const int64_t width = features_per_sample();
  w.bottom.training = w.top.training = w.training;
  if (bottom_)
    bottom_->Forward(parameters, n, w.dense.data(), options_.num_dense, w.features.data(), width,
                     &w.bottom);
  cross_.Forward(parameters, n, w.features.data(), w.crossed.data(), &w.cross);
  top_->Forward(parameters, n, w.crossed.data(), width, w.logits.data(), 1, &w.top);
}

void DlrmDcnV2::Backward(const float* parameters, int64_t n, float* gradients,
                         Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  const int64_t width = features_per_sample();
  top_->Backward(parameters, n, w.crossed.data(), width, w.logits.data(), 1, w.d_logits.data(), 1,
                 gradients, w.d_crossed.data(), width, &w.top);
  cross_.Backward(parameters, n, w.features.data(), w.d_crossed.data(), gradients,
                  w.d_features.data(), &w.cross);
  if (bottom_)
    bottom_->Backward(parameters, n, w.dense.data(), options_.num_dense, w.features.data(), width,
                      w.d_features.data(), width, gradients, nullptr, 0, &w.bottom);
}

}  // namespace renzan
