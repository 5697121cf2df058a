#pragma once

// DLRM: bottom MLP, dot interaction of all feature vectors, top MLP (Naumov et al., 2019). Rows of
// another dimension than the bottom MLP's output are projected first.

#include <optional>

#include "renzan/model/model.h"
#include "renzan/model/projections.h"
#include "renzan/nn/mlp.h"

namespace renzan {

class Dlrm : public Model {
 public:
  explicit Dlrm(const ModelOptions& options);

  std::unique_ptr<Model::Workspace> MakeWorkspace(int64_t n) const override;
  std::vector<int64_t> WorkspaceColumns() const override;
  double InteractionFlops() const override;
  double InteractionValuesOnGpu() const override;
  void Forward(const PackedParameters& parameters, Model::Workspace* workspace) const override;
  void Backward(const PackedParameters& parameters, WeightGradients* gradients,
                Model::Workspace* workspace) const override;

 private:
  struct Workspace;
  int64_t vectors_, interaction_width_;
  std::optional<Mlp> bottom_;
  Projections projections_;
  std::optional<Mlp> top_;
};

}  // namespace renzan
