#include "renzan/checkpoint/export.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/safetensors.h"

namespace renzan {

bool IsOptimizerState(const std::string& key) { return key.find('/') != std::string::npos; }

int64_t ExportModel(CheckpointReader& model, const std::string& path, bool weights_only) {
  if (FileExists(path))
    Fail(ErrorCode::kCantCreate, "{} already exists: choose another name or remove it", path);
  model.VerifyAll();
  std::vector<TensorInfo> tensors;
  for (const std::string& key : model.keys())
    if (IsModelTensor(key) && !(weights_only && IsOptimizerState(key)))
      tensors.push_back(model.FloatInfo(key));
  // The order of the format's writer: every tensor begins at a multiple of its element's size.
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return BytesOf(a.dtype) > BytesOf(b.dtype);
  });
  SafetensorsWriter::Options options;
  options.metadata["renzan.step"] = std::to_string(model.step());
  if (const std::string& sha256 = model.manifest().model_sha256; !sha256.empty())
    options.metadata["renzan.model_sha256"] = sha256;
  if (const std::string& quantization = model.manifest().quantization; !quantization.empty())
    options.metadata["renzan.quantization"] = quantization;

  const std::string partial = path + ".partial";
  SafetensorsWriter writer(partial, tensors, options);
  std::vector<float> buffer(1 << 16);
  std::vector<std::byte> bytes(buffer.size() * sizeof(float));
  for (const TensorInfo& tensor : tensors) {
    const int64_t elements = NumElements(tensor.shape);
    const FloatType type = FloatTypeOf(tensor.dtype);
    for (int64_t first = 0; first < elements; first += static_cast<int64_t>(buffer.size())) {
      const auto piece =
          std::span(buffer).first(std::min(buffer.size(), static_cast<size_t>(elements - first)));
      model.Read(tensor.key, first, piece);
      const auto encoded = std::span(bytes).first(EncodedBytes(type, piece.size()));
      Encode(type, piece, encoded.data());
      writer.Append(encoded);
    }
  }
  writer.Close();
  if (std::rename(partial.c_str(), path.c_str()) != 0)
    FailErrno(errno, fmt::format("cannot write {}", path));
  return static_cast<int64_t>(tensors.size());
}

}  // namespace renzan
