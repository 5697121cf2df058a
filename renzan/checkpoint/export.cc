#include "renzan/checkpoint/export.h"

#include "renzan/base/error.h"

namespace renzan {

bool IsOptimizerState(const std::string& key) { return key.find('/') != std::string::npos; }

int64_t ExportModel(ModelReader& model, const std::string& path, bool weights_only) {
  if (FileExists(path))
    Fail(ErrorCode::kCantCreate, "{} exists already: choose another name or remove it", path);
  model.VerifyAll();
  std::vector<TensorInfo> tensors;
  for (const std::string& key : model.keys())
    if (!weights_only || !IsOptimizerState(key)) tensors.push_back({key, model.Info(key).shape});
  SafetensorsWriter writer(path, tensors,
                           {{"renzan.step", std::to_string(model.step())},
                            {"renzan.model_sha256", model.model_sha256()}});
  for (const TensorInfo& tensor : tensors) writer.Append(model.Tensor(tensor.key).values);
  writer.Close();
  return static_cast<int64_t>(tensors.size());
}

}  // namespace renzan
