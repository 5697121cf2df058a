#include "renzan/checkpoint/export.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/base/file/staged.h"
#include "renzan/checkpoint/safetensors.h"
#include "renzan/checkpoint/whole_tensors.h"
#include "renzan/storage/storage.h"

namespace renzan {

namespace {

constexpr int64_t kValuesAtOnce = 1 << 16;

void AppendRows(CheckpointReader& model, const WholeTensor& tensor, SafetensorsWriter& writer) {
  std::vector<float> values;
  std::vector<std::byte> bytes;
  const int64_t row_blocks = std::ssize(tensor.blocks);
  const int64_t width = std::max<int64_t>(1, tensor.row_values());
  const int64_t rows_at_once =
      std::max<int64_t>(1, kValuesAtOnce / width / row_blocks) * row_blocks;
  const FloatType type = FloatTypeOf(tensor.info.dtype);
  for (int64_t row = 0; row < tensor.rows(); row += rows_at_once) {
    values.resize(static_cast<size_t>(std::min(rows_at_once, tensor.rows() - row) * width));
    ReadRows(model, tensor, row, values);
    bytes.resize(EncodedBytes(type, values.size()));
    Encode(type, values, bytes.data());
    writer.Append(bytes);
  }
}

// For types that tables do not have.
void AppendBytes(CheckpointReader& model, const TensorInfo& tensor, SafetensorsWriter& writer) {
  std::vector<std::byte> bytes;
  const int64_t elements = NumElements(tensor.shape);
  for (int64_t first = 0; first < elements; first += kValuesAtOnce) {
    bytes.resize(static_cast<size_t>(std::min(kValuesAtOnce, elements - first)) *
                 BytesOf(tensor.dtype));
    model.ReadBytes(tensor.key, first, bytes);
    writer.Append(bytes);
  }
}

}  // namespace

bool IsOptimizerState(const std::string& key) {
  return key.find('/') != std::string::npos && !key.starts_with("model.");
}

int64_t ExportModel(CheckpointReader& model, const std::string& path, bool weights_only) {
  if (!Storage::Of(path).IsMissing(path))
    Fail(ErrorCode::kCantCreate, "{} already exists: choose another name or remove it", path);
  model.VerifyFiles();
  std::vector<WholeTensor> tensors = WholeTensorsOf(model);
  if (weights_only)
    std::erase_if(tensors, [](const WholeTensor& t) { return IsOptimizerState(t.info.key); });
  // The order of the format's writer: every tensor begins at a multiple of its element's size.
  std::stable_sort(tensors.begin(), tensors.end(), [](const WholeTensor& a, const WholeTensor& b) {
    return BytesOf(a.info.dtype) > BytesOf(b.info.dtype);
  });
  SafetensorsWriter::Options options;
  options.metadata["renzan.step"] = std::to_string(model.step());
  if (const std::string& sha256 = model.manifest().model_sha256; !sha256.empty())
    options.metadata["renzan.model_sha256"] = sha256;
  if (const std::string& quantization = model.manifest().quantization; !quantization.empty())
    options.metadata["renzan.quantization"] = quantization;

  // In a store a file appears only when it is complete.
  std::optional<StagedFile> staged;
  if (!IsInStore(path)) staged.emplace(path);
  std::vector<TensorInfo> infos;
  for (const WholeTensor& tensor : tensors) infos.push_back(tensor.info);
  SafetensorsWriter writer(staged ? staged->staging() : path, infos, options);
  for (const WholeTensor& tensor : tensors)
    IsFloat(tensor.info.dtype) ? AppendRows(model, tensor, writer)
                               : AppendBytes(model, tensor.info, writer);
  writer.Close();
  if (staged) staged->Commit();
  return static_cast<int64_t>(tensors.size());
}

std::string ExportName(const std::string& given) {
  constexpr std::string_view kEnding = ".safetensors", kScheme = "s3://";
  if (given.ends_with(kEnding)) return given;
  const bool is_bucket = IsInStore(given) && given.find('/', kScheme.size()) == std::string::npos;
  const std::filesystem::path name = std::filesystem::path(given).filename();
  if (is_bucket || name.empty() || name == "." || name == ".." || name.has_extension()) return "";
  return given + std::string(kEnding);
}

}  // namespace renzan
