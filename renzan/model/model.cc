#include "renzan/model/model.h"

#include "renzan/base/error.h"
#include "renzan/model/dlrm.h"
#include "renzan/model/dlrm_dcnv2.h"

namespace renzan {
namespace {

template <typename Type>
std::unique_ptr<Model> Make(const ModelOptions& options) {
  return std::make_unique<Type>(options);
}

constexpr ModelType kTypes[] = {
    {"dlrm", Interaction::kDot, Make<Dlrm>},
    {"dlrm_dcnv2", Interaction::kCross, Make<DlrmDcnV2>},
};

}  // namespace

std::vector<std::string> ModelTypeNames() {
  std::vector<std::string> names;
  for (const ModelType& type : kTypes) names.push_back(type.name);
  return names;
}

const ModelType& FindModelType(const std::string& name) {
  for (const ModelType& type : kTypes)
    if (name == type.name) return type;
  Fail(ErrorCode::kConfig, "model.type: unknown model '{}'", name);
}

void Model::InitializeWorkspace(int64_t n, Workspace* workspace) const {
  workspace->dense.Reshape(n, options_.num_dense, options_.precision);
  workspace->features.Reshape(n, features_per_sample(), options_.precision);
  workspace->d_features.Reshape(n, features_per_sample(), options_.precision);
  workspace->logits = AlignedBuffer(static_cast<size_t>(n));
  workspace->d_logits = AlignedBuffer(static_cast<size_t>(n));
}

int64_t FeaturesPerSample(const ModelOptions& options) {
  int64_t sum = options.embedding_dim;
  for (const TableInput& table : options.tables) sum += table.dim;
  return sum;
}

double FlopsPerSample(const Model& model) {
  // Products per weight: forward, its own gradient, and its input's gradient, which the first layer
  // of the bottom MLP does not need.
  double flops = 0;
  for (const Parameter& parameter : model.layout().parameters())
    if (parameter.shape.size() == 2)
      flops +=
          (parameter.name == "bottom.0.weight" ? 4.0 : 6.0) * static_cast<double>(parameter.size);
  return flops + model.InteractionFlops();
}

double ActivationsPerSample(const Model& model) {
  double values = 0;
  for (const Parameter& parameter : model.layout().parameters())
    if (parameter.shape.size() == 2) values += static_cast<double>(parameter.shape[0]);
  return values;
}

std::unique_ptr<Model> MakeModel(const ModelOptions& options) {
  if (options.num_dense == 0 && options.tables.empty())
    Fail(ErrorCode::kConfig, "the dataset has neither dense nor categorical features");
  return FindModelType(options.type).make(options);
}

}  // namespace renzan
