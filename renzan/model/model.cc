#include "renzan/model/model.h"

#include "renzan/base/error.h"
#include "renzan/model/dlrm.h"
#include "renzan/model/dlrm_dcnv2.h"

namespace renzan {

void Model::InitializeWorkspace(int64_t n, Workspace* workspace) const {
  workspace->dense.Reshape(n, options_.num_dense, options_.precision);
  workspace->features.Reshape(n, features_per_sample(), options_.precision);
  workspace->d_features.Reshape(n, features_per_sample(), options_.precision);
  workspace->logits = AlignedBuffer(static_cast<size_t>(n));
  workspace->d_logits = AlignedBuffer(static_cast<size_t>(n));
}

std::vector<std::string> ModelTypes() { return {"dlrm", "dlrm_dcnv2"}; }

std::unique_ptr<Model> MakeModel(const ModelOptions& options) {
  if (options.num_dense == 0 && options.num_tables == 0)
    Fail(ErrorCode::kConfig, "the dataset has neither dense nor categorical features");
  if (options.type == "dlrm") return std::make_unique<Dlrm>(options);
  if (options.type == "dlrm_dcnv2") return std::make_unique<DlrmDcnV2>(options);
  Fail(ErrorCode::kConfig, "model.type: unknown model '{}'", options.type);
}

}  // namespace renzan
