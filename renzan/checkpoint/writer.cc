#include "renzan/checkpoint/writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/checkpoint/initial_tensor.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/safetensors.h"

namespace renzan {
namespace {

// A piece stays in the core's cache between copying, hashing and writing.
constexpr size_t kPieceBytes = 1 << 18;

template <typename T>
TensorSource SourceOfSpan(std::string key, std::vector<int64_t> shape, DType dtype,
                          std::span<const T> values) {
  CHECK_MSG(static_cast<size_t>(NumElements(shape)) == values.size(),
            "{}: {} values do not fill {}", key, values.size(), ShapeText(shape));
  return {std::move(key), std::move(shape), dtype,
          [bytes = std::as_bytes(values)](size_t offset, std::span<std::byte> out) {
            std::memcpy(out.data(), bytes.data() + offset, out.size());
          }};
}

template <typename T>
TensorSource SourceOfCopiedSpan(std::string key, std::vector<int64_t> shape,
                                std::span<const T> values) {
  const auto copy = std::make_shared<const std::vector<T>>(values.begin(), values.end());
  TensorSource source = SourceOf(std::move(key), std::move(shape), std::span<const T>(*copy));
  source.read = [copy, read = std::move(source.read)](size_t offset, std::span<std::byte> out) {
    read(offset, out);
  };
  return source;
}

void Copy(const TensorSource& tensor, uint64_t bytes, const WriteOptions& options,
          std::span<std::byte> buffer, SafetensorsWriter& writer, SparseTensorHash* whole) {
  for (uint64_t offset = 0; offset < bytes; offset += buffer.size()) {
    if (options.cancel != nullptr && *options.cancel)
      Fail(ErrorCode::kTempFail, "writing a checkpoint was cancelled");
    const auto piece = buffer.first(std::min<uint64_t>(bytes - offset, buffer.size()));
    tensor.read(offset, piece);
    writer.Append(piece);
    if (whole != nullptr) whole->Append(piece);
  }
}

}  // namespace

TensorSource SourceOf(std::string key, std::vector<int64_t> shape, std::span<const float> values) {
  return SourceOfSpan(std::move(key), std::move(shape), DType::kF32, values);
}
TensorSource SourceOf(std::string key, std::vector<int64_t> shape,
                      std::span<const int32_t> values) {
  return SourceOfSpan(std::move(key), std::move(shape), DType::kI32, values);
}
TensorSource SourceOf(std::string key, std::vector<int64_t> shape,
                      std::span<const int64_t> values) {
  return SourceOfSpan(std::move(key), std::move(shape), DType::kI64, values);
}

TensorSource SourceOfCopy(std::string key, std::vector<int64_t> shape,
                          std::span<const float> values) {
  return SourceOfCopiedSpan(std::move(key), std::move(shape), values);
}
TensorSource SourceOfCopy(std::string key, std::vector<int64_t> shape,
                          std::span<const int64_t> values) {
  return SourceOfCopiedSpan(std::move(key), std::move(shape), values);
}

uint64_t TensorFile::bytes() const {
  uint64_t sum = 0;
  for (const TensorSource& tensor : tensors)
    sum += static_cast<uint64_t>(NumElements(tensor.shape)) * BytesOf(tensor.dtype);
  return sum;
}

namespace {

CheckpointFile Write(const std::string& path, std::span<const TensorSource> tensors,
                     const std::optional<TensorFile::Sparse>& sparse, const WriteOptions& options) {
  std::vector<const TensorSource*> order;
  for (const TensorSource& tensor : tensors) order.push_back(&tensor);
  // This order keeps every tensor aligned, because there are no gaps between tensors.
  std::stable_sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return BytesOf(a->dtype) > BytesOf(b->dtype);
  });
  std::vector<TensorInfo> infos;
  for (const TensorSource* tensor : order)
    infos.push_back({tensor->key, tensor->shape, tensor->dtype});
  std::map<std::string, SparseTensorHash> whole_hashes;
  if (sparse && options.hash_tensors)
    for (const TensorInfo& whole : sparse->tensors)
      whole_hashes.try_emplace(whole.key, InitialTensor(sparse->initial, whole), sparse->rows(),
                               options.cancel);
  SafetensorsWriter writer(path, infos, {.hash_tensors = options.hash_tensors});
  std::vector<std::byte> buffer(kPieceBytes);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto whole = whole_hashes.find(infos[i].key);
    Copy(*order[i], NumBytes(infos[i]), options, buffer, writer,
         whole == whole_hashes.end() ? nullptr : &whole->second);
  }
  writer.Close();
  CheckpointFile file{.name = path.substr(path.rfind('/') + 1),
                      .bytes = writer.bytes(),
                      .xxh128 = writer.file_xxh128(),
                      .tensors = {},
                      .sparse = std::nullopt};
  for (size_t i = 0; i < infos.size(); ++i)
    file.tensors.push_back({std::move(infos[i]), writer.tensor_sha256()[i]});
  if (!sparse) return file;
  file.sparse = {.initial = sparse->initial, .tensors = {}};
  for (const TensorInfo& whole : sparse->tensors)
    file.sparse->tensors.push_back(
        {whole, options.hash_tensors ? whole_hashes.at(whole.key).HexDigest() : ""});
  return file;
}

}  // namespace

CheckpointFile WriteCheckpointFile(const std::string& location, const TensorFile& file,
                                   const WriteOptions& options) {
  return Write(location + file.name, file.tensors, file.sparse, options);
}

CheckpointFile WriteCheckpointFile(const std::string& location, const std::string& name,
                                   std::span<const TensorSource> tensors,
                                   const WriteOptions& options) {
  return Write(location + name, tensors, std::nullopt, options);
}

std::string CheckpointWriter::Commit(CheckpointManifest manifest) {
  return Commit(std::move(manifest), [](const CheckpointManifest&) {});
}

std::string CheckpointWriter::CheckAndCommit(CheckpointManifest manifest) {
  return Commit(std::move(manifest), [&](const CheckpointManifest& complete) {
    CheckpointReader(location().substr(0, location().rfind('/')), complete);
  });
}

std::string CheckpointWriter::Commit(CheckpointManifest manifest,
                                     FunctionRef<void(const CheckpointManifest&)> check) {
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.name < b.name; });
  if (manifest.kind == CheckpointKind::kFull)
    manifest.model_sha256 = ModelSha256(manifest.files, manifest.step);
  const std::string text = manifest.ToJson();
  // Publish only a manifest that can be read back.
  const CheckpointManifest complete = CheckpointManifest::Parse(text);
  check(complete);
  tree_->Commit(kCheckpointManifestName, text);
  return complete.manifest_sha256;
}

}  // namespace renzan
