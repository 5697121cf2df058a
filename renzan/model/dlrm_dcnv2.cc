#include "renzan/model/dlrm_dcnv2.h"

#include "renzan/model/mlps.h"

namespace renzan {

struct DlrmDcnV2::Workspace : Model::Workspace {
  Mlp::Workspace bottom, top;
  LowRankCross::Workspace cross;
  const BlockedMatrix* crossed = nullptr;  // the cross network's output
  BlockedMatrix d_crossed;                 // like the features
  BlockedMatrix d_bottom;                  // [n, dim]
  BlockedMatrix d_top;                     // [n, 1]
};

DlrmDcnV2::DlrmDcnV2(const ModelOptions& options)
    : Model(options),
      bottom_(MakeBottomMlp(options, &layout_)),
      cross_(features_per_sample(), options.cross_rank, options.cross_layers, &layout_),
      top_(MakeTopMlp(options, features_per_sample(), &layout_)) {}

std::unique_ptr<Model::Workspace> DlrmDcnV2::MakeWorkspace(int64_t n) const {
  auto workspace = std::make_unique<Workspace>();
  InitializeWorkspace(n, workspace.get());
  if (bottom_) workspace->bottom = bottom_->MakeWorkspace(n, options_.precision);
  workspace->top = top_->MakeWorkspace(n, options_.precision);
  workspace->cross = cross_.MakeWorkspace(n, options_.precision);
  workspace->d_crossed.Reshape(n, features_per_sample(), options_.precision);
  workspace->d_bottom.Reshape(n, options_.embedding_dim, options_.precision);
  workspace->d_top.Reshape(n, 1, options_.precision);
  return workspace;
}

std::vector<int64_t> DlrmDcnV2::WorkspaceColumns() const {
  const ModelOptions& m = options_;
  const int64_t features = features_per_sample();
  std::vector<int64_t> columns = ColumnsOfInputs(m);
  for (int layer = 0; layer < m.cross_layers; ++layer)
    columns.insert(columns.end(), {features, m.cross_rank, features});
  columns.insert(columns.end(), {features, features, m.cross_rank});
  AddMlpColumns(features, m.top_mlp, 1, &columns);
  return columns;
}

double DlrmDcnV2::InteractionValuesOnGpu() const {
  return static_cast<double>(features_per_sample()) * (options_.cross_layers + 1);
}

void DlrmDcnV2::Forward(const PackedParameters& parameters, Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  w.bottom.training = w.top.training = w.training;
  if (bottom_) {
    bottom_->Forward(parameters, w.dense, &w.bottom);
    w.features.SetColumns(0, w.bottom.output(), 0, options_.embedding_dim);
  }
  w.crossed = &cross_.Forward(parameters, w.features, &w.cross);
  top_->Forward(parameters, *w.crossed, &w.top);
  ReadLogits(w.top, &w.logits);
}

void DlrmDcnV2::Backward(const PackedParameters& parameters, WeightGradients* gradients,
                         Model::Workspace* base) const {
  Workspace& w = static_cast<Workspace&>(*base);
  WriteLogitGradient(w.d_logits, &w.d_top);
  top_->Backward(parameters, *w.crossed, &w.d_top, gradients, &w.d_crossed, &w.top);
  cross_.Backward(parameters, w.features, &w.d_crossed, gradients, &w.d_features, &w.cross);
  if (!bottom_) return;
  w.d_bottom.SetColumns(0, w.d_features, 0, options_.embedding_dim);
  bottom_->Backward(parameters, w.dense, &w.d_bottom, gradients, nullptr, &w.bottom);
}

}  // namespace renzan
