#include "renzan/saving/snapshot.h"

#include <utility>

namespace renzan {
namespace {

TensorFile DenseFile(ModelState& model) {
  TensorFile file{.name = "dense.safetensors", .tensors = {}};
  for (const Parameter& parameter : model.model().layout().parameters()) {
    const size_t offset = static_cast<size_t>(parameter.offset);
    const size_t size = static_cast<size_t>(parameter.size);
    file.tensors.push_back(SourceOfCopy(parameter.name, parameter.shape,
                                        model.parameters().span().subspan(offset, size)));
    if (parameter.is_statistic()) continue;  // no optimizer changes it
    for (DenseOptimizer::State& state : model.dense_optimizer().states())
      file.tensors.push_back(SourceOfCopy(parameter.name + "/" + state.name, parameter.shape,
                                          state.values.span().subspan(offset, size)));
  }
  return file;
}

}  // namespace

SnapshotBytes EstimateBytes(ModelState& model, const SnapshotOptions& options) {
  SnapshotBytes bytes = EstimateTableBytes(model.embeddings(), options.tables);
  if (!options.with_dense) return bytes;
  const size_t arrays = 1 + model.dense_optimizer().states().size();
  const uint64_t dense = arrays * model.parameters().size() * sizeof(float);
  return {.full = bytes.full + dense, .incremental = bytes.incremental + dense};
}

ModelSnapshot::ModelSnapshot(ModelState& model, const SnapshotOptions& options)
    : tables_(model.embeddings(), options.tables) {
  try {
    if (options.with_dense) files_.push_back(DenseFile(model));
    files_.insert(files_.end(), tables_.files().begin(), tables_.files().end());
  } catch (...) {
    tables_.Abandon();  // its rows have not been saved
    throw;
  }
}

}  // namespace renzan
