#pragma once

// DLRM-DCNv2, MLPerf's recommendation model: bottom MLP, low-rank cross network over the
// concatenated feature vectors, top MLP ("over-arch").

#include <optional>

#include "renzan/model/low_rank_cross.h"
#include "renzan/model/model.h"
#include "renzan/nn/mlp.h"

namespace renzan {

class DlrmDcnV2 : public Model {
 public:
  explicit DlrmDcnV2(const ModelOptions& options);

  std::unique_ptr<Model::Workspace> MakeWorkspace(int64_t n) const override;
  std::vector<int64_t> WorkspaceColumns() const override;
  double InteractionValuesOnGpu() const override;
  void Forward(const PackedParameters& parameters, Model::Workspace* workspace) const override;
  void Backward(const PackedParameters& parameters, WeightGradients* gradients,
                Model::Workspace* workspace) const override;

 private:
  struct Workspace;
  std::optional<Mlp> bottom_;
  LowRankCross cross_;
  std::optional<Mlp> top_;
};

}  // namespace renzan
