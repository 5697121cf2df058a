#include "renzan/checkpoint/reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/sha256.h"
#include "renzan/checkpoint/block_key.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

// The parent directory of `dir`, which may be "." or a link.
std::string ResolvedParent(const std::string& dir) {
  if (IsInStore(dir)) return ParentDirectory(NormalizedPath(dir));
  fs::path path(dir);
  if (!path.has_filename()) path = path.parent_path();
  std::error_code error;
  if (fs::is_symlink(path, error) || path.filename() == "." || path.filename() == "..") {
    path = fs::canonical(path, error);
    if (error) FailToRead(error.value(), dir);
  }
  return ParentDirectory(path.string());
}

// "embedding.C1.weight" and "embedding.C1.weight/adagrad" belong to the table "embedding.C1", and
// those of a block to the block. Empty for tensors of no table.
std::string TableOf(const std::string& key) {
  const std::optional<TableTensorKey> parts = ParseTableTensorKey(key);
  return parts ? parts->block.Key() : "";
}

// [n, ...]: `shape` with another number of rows.
std::vector<int64_t> WithRows(std::vector<int64_t> shape, int64_t rows) {
  shape[0] = rows;
  return shape;
}

}  // namespace

CheckpointReader::CheckpointReader(const std::string& dir, bool verify)
    : files_(std::make_unique<CheckpointFiles>(dir, verify)) {
  Open(verify);
}

CheckpointReader::CheckpointReader(const std::string& dir, const CheckpointManifest& manifest)
    : files_(std::make_unique<CheckpointFiles>(dir, manifest, false)) {
  Open(false);
}

CheckpointReader::CheckpointReader(std::unique_ptr<CheckpointFiles> files)
    : files_(std::move(files)) {
  Open(false);
}

void CheckpointReader::Open(bool verify) {
  if (kind() == CheckpointKind::kFull) {
    tensors_ = files_->tensors();
    for (const CheckpointFile& file : manifest().files)
      if (file.sparse) ComposeSparse(file);
    return;
  }
  OpenBase(verify);
  try {
    ComposeTensors();
  } catch (const Error& error) {
    throw error.WithContext(fmt::format("{} does not fit its base {}", dir(), base_->dir()));
  }
}

void CheckpointReader::OpenBase(bool verify) {
  const CheckpointBase& expected = *manifest().base;
  const std::string path = ResolvedParent(dir()) + "/" + expected.name;
  const std::string context =
      fmt::format("{} holds only what changed since {}, which cannot be used", dir(), path);
  std::unique_ptr<CheckpointFiles> files;
  try {
    files = std::make_unique<CheckpointFiles>(path, verify);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData && !error.is_missing_file())
      throw error.WithContext(context);
    Fail(ErrorCode::kData, "{}: {}", context, error.what());
  }
  if (files->manifest().manifest_sha256 != expected.manifest_sha256)
    Fail(
        ErrorCode::kData,
        "{}: it is not the original base (its manifest_sha256 is {}, not {}): restore the original "
        "one",
        context, files->manifest().manifest_sha256, expected.manifest_sha256);
  if (files->manifest().kind != CheckpointKind::kFull)
    Fail(ErrorCode::kData, "{}: it is not a full checkpoint", context);
  base_.reset(new CheckpointReader(std::move(files)));
}

// The file must hold the row numbers, those rows of every tensor that has all rows, and nothing
// else.
void CheckpointReader::ComposeSparse(const CheckpointFile& file) {
  try {
    std::set<std::string> unused;
    for (const CheckpointFile::Tensor& tensor : file.tensors) unused.insert(tensor.info.key);
    for (const CheckpointFile::Tensor& tensor : file.sparse->tensors) {
      const TensorInfo& whole = tensor.info;
      initial_.try_emplace(whole.key, file.sparse->initial, whole);
      const Replacement replacement = CheckReplacement(whole);
      replacements_[whole.key] = replacement;
      tensors_[whole.key] = whole;
      tensors_.erase(replacement.rows_key);
      unused.erase(whole.key);
      unused.erase(replacement.rows_key);
    }
    if (!unused.empty())
      Fail(ErrorCode::kData, "it does not say how many rows '{}' has", *unused.begin());
  } catch (const Error& error) {
    throw error.WithContext(fmt::format("{}/{}", dir(), file.name));
  }
}

// The increment must hold every tensor of the base's model, whole or as changed rows, and no
// others. Otherwise a lost part could pass for an unchanged one.
void CheckpointReader::ComposeTensors() {
  std::set<std::string> unused;
  for (const auto& [key, info] : files_->tensors()) unused.insert(key);
  for (const auto& [key, info] : base_->tensors_) {
    if (!IsModelTensor(key)) continue;
    tensors_[key] = info;
    if (!TableOf(key).empty()) {
      const Replacement replacement = CheckReplacement(info);
      replacements_[key] = replacement;
      unused.erase(replacement.rows_key);
      for (const char* part : {"", ".q8", ".scale", ".offset"})
        if (replacement.quantized == (*part != '\0')) unused.erase(key + part);
      continue;
    }
    const auto whole = files_->tensors().find(key);
    if (whole == files_->tensors().end() || whole->second != info)
      Fail(ErrorCode::kData, "it lacks tensor '{}' {}", key, ShapeText(info.shape));
    unused.erase(key);
  }
  for (const std::string& key : unused) {
    if (IsModelTensor(key)) Fail(ErrorCode::kData, "the base has no tensor for '{}'", key);
    tensors_[key] = files_->tensors().at(key);
  }
}

CheckpointReader::Replacement CheckpointReader::CheckReplacement(const TensorInfo& base) const {
  const auto& tensors = files_->tensors();
  const auto need = [&](const std::string& key, const std::vector<int64_t>& shape, DType dtype) {
    const auto found = tensors.find(key);
    if (found == tensors.end() || found->second != TensorInfo{key, shape, dtype})
      Fail(ErrorCode::kData, "it lacks tensor '{}' {} {}", key, Name(dtype), ShapeText(shape));
  };
  Replacement replacement{.rows_key = TableOf(base.key) + ".rows"};
  const auto rows = tensors.find(replacement.rows_key);
  if (rows == tensors.end() || rows->second.shape.size() != 1 || rows->second.dtype != DType::kI32)
    Fail(ErrorCode::kData, "it lacks tensor '{}' I32 [n]", replacement.rows_key);
  if (!IsFloat(base.dtype) || base.shape.empty())
    Fail(ErrorCode::kData, "the tensor '{}' has no rows of floating-point numbers", base.key);
  const int64_t n = rows->second.shape[0];
  replacement.quantized =
      !manifest().quantization.empty() && base.key == TableOf(base.key) + ".weight";
  if (replacement.quantized) {
    need(base.key + ".q8", WithRows(base.shape, n), DType::kU8);
    need(base.key + ".scale", {n}, DType::kF32);
    need(base.key + ".offset", {n}, DType::kF32);
  } else {
    need(base.key, WithRows(base.shape, n), base.dtype);
  }
  return replacement;
}

std::vector<std::string> CheckpointReader::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, info] : tensors_) keys.push_back(key);
  return keys;
}

const TensorInfo& CheckpointReader::Info(const std::string& key) const {
  const auto found = tensors_.find(key);
  if (found != tensors_.end()) return found->second;
  const std::string nearest = NearestName(key, keys());
  Fail(ErrorCode::kData, "{} has no tensor '{}'{}", dir(), key,
       nearest.empty() ? "" : fmt::format("; the nearest is '{}'", nearest));
}

const RowOverlay& CheckpointReader::Overlay(const std::string& key) {
  const auto known = overlays_.find(key);
  if (known != overlays_.end()) return known->second;
  const Replacement& replacement = replacements_.at(key);
  const std::vector<int64_t>& shape = Info(key).shape;
  RowOverlay overlay;
  overlay.width = NumElements(WithRows(shape, 1));
  overlay.rows = files_->Tensor(replacement.rows_key).i32();
  try {
    CheckRows(overlay.rows, shape[0], replacement.rows_key);
  } catch (const Error& error) {
    throw error.WithContext(dir());
  }
  overlay.type = FloatTypeOf(Info(key).dtype);
  if (replacement.quantized) {
    overlay.q8 = files_->Tensor(key + ".q8").u8();
    overlay.scale = files_->Tensor(key + ".scale").f32();
    overlay.offset = files_->Tensor(key + ".offset").f32();
  } else {
    overlay.values = files_->Tensor(key).bytes;
  }
  return overlays_[key] = overlay;
}

const TensorInfo& CheckpointReader::FloatInfo(const std::string& key) const {
  const TensorInfo& info = Info(key);
  if (!IsFloat(info.dtype))
    Fail(ErrorCode::kData, "tensor '{}' of {} is {}, expected F32, F16 or BF16", key, dir(),
         Name(info.dtype));
  return info;
}

void CheckpointReader::Read(const std::string& key, int64_t first_element, std::span<float> out) {
  const TensorInfo& info = FloatInfo(key);
  const int64_t size = static_cast<int64_t>(out.size()), elements = NumElements(info.shape);
  CHECK_MSG(first_element >= 0 && size <= elements && first_element <= elements - size,
            "{} values from {} are not within {} {}", size, first_element, key,
            ShapeText(info.shape));
  if (out.empty()) return;
  if (replacements_.contains(key)) {
    base_ != nullptr ? base_->Read(key, first_element, out)
                     : initial_.at(key).Read(first_element, out);
    return Overlay(key).Apply(first_element, out);
  }
  const FloatType type = FloatTypeOf(info.dtype);
  const std::span<const std::byte> values = files_->Tensor(key).bytes;
  Decode(type, values.data() + EncodedBytes(type, static_cast<size_t>(first_element)), out);
}

void CheckpointReader::ReadBytes(const std::string& key, int64_t first_element,
                                 std::span<std::byte> out) {
  const TensorInfo& info = Info(key);
  const int64_t width = static_cast<int64_t>(BytesOf(info.dtype));
  const int64_t size = static_cast<int64_t>(out.size());
  const int64_t elements = NumElements(info.shape);
  CHECK_MSG(size % width == 0 && first_element >= 0 && first_element <= elements - size / width,
            "{} bytes from element {} are not within {} {}", size, first_element, key,
            ShapeText(info.shape));
  if (replacements_.contains(key)) {
    std::vector<float> values(static_cast<size_t>(size / width));
    Read(key, first_element, values);
    Encode(FloatTypeOf(info.dtype), values, out.data());
    return;
  }
  const std::span<const std::byte> bytes = files_->Tensor(key).bytes;
  if (!out.empty()) std::memcpy(out.data(), bytes.data() + first_element * width, out.size());
}

void CheckpointReader::Expect(const std::string& key, const std::vector<int64_t>& shape) const {
  const TensorInfo& info = Info(key);
  if (info.shape != shape)
    Fail(ErrorCode::kData,
         "tensor '{}' of {} has shape {}, expected {}: was it trained with another configuration?",
         key, dir(), ShapeText(info.shape), ShapeText(shape));
}

void CheckpointReader::Read(const std::string& key, const std::vector<int64_t>& shape,
                            std::span<float> out) {
  Expect(key, shape);
  CHECK(static_cast<int64_t>(out.size()) == NumElements(shape));
  Read(key, 0, out);
}

void CheckpointReader::CheckFinite(const std::string& what, bool finite) const {
  if (!finite) Fail(ErrorCode::kData, "{}: {} holds NaN or infinite values", dir(), what);
}

std::vector<int32_t> CheckpointReader::ReplacedRows(const std::string& key) {
  Info(key);
  if (base_ == nullptr || !replacements_.contains(key)) return {};
  const std::span<const int32_t> rows = Overlay(key).rows;
  return {rows.begin(), rows.end()};
}

std::optional<CheckpointReader::SparseTable> CheckpointReader::FindSparseTable(
    const std::string& key) {
  if (base_ != nullptr) return base_->FindSparseTable(key);
  Info(key);
  const auto initial = initial_.find(key);
  if (initial == initial_.end()) return std::nullopt;
  const std::span<const int32_t> rows = Overlay(key).rows;
  return SparseTable{initial->second.rows(), {rows.begin(), rows.end()}};
}

std::vector<int64_t> CheckpointReader::ReadI64(const std::string& key) {
  const TensorInfo& info = Info(key);
  if (info.dtype != DType::kI64)
    Fail(ErrorCode::kData, "tensor '{}' of {} is {}, expected I64", key, dir(), Name(info.dtype));
  const std::span<const int64_t> values = files_->Tensor(key).i64();
  return {values.begin(), values.end()};
}

void CheckpointReader::VerifySparse(const CheckpointFile& file) {
  std::vector<std::byte> bytes;
  for (const auto& [info, sha256] : file.sparse->tensors) {
    if (sha256.empty()) continue;
    constexpr int64_t kElementsAtOnce = 1 << 16;
    const int64_t elements = NumElements(info.shape);
    Sha256 hash;
    for (int64_t first = 0; first < elements; first += kElementsAtOnce) {
      bytes.resize(static_cast<size_t>(std::min(kElementsAtOnce, elements - first)) *
                   BytesOf(info.dtype));
      ReadBytes(info.key, first, bytes);
      hash.Update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    if (const std::string sum = hash.HexDigest(); sum != sha256)
      Fail(ErrorCode::kData,
           "{}/{}: tensor '{}' with its initial rows has the SHA-256 {}, but the manifest says {}",
           dir(), file.name, info.key, sum, sha256);
  }
}

void CheckpointReader::VerifyFiles(bool base_too) {
  files_->VerifyAll();
  for (const auto& [key, replacement] : replacements_) Overlay(key);
  if (base_too && base_ != nullptr) base_->VerifyFiles();
}

void CheckpointReader::VerifyAll(bool base_too) {
  VerifyFiles(base_too);
  for (const CheckpointFile& file : manifest().files)
    if (file.sparse) VerifySparse(file);
  if (base_too && base_ != nullptr)
    for (const CheckpointFile& file : base_->manifest().files)
      if (file.sparse) base_->VerifySparse(file);
}

std::string CheckpointReader::RecordedSha256(const std::string& key) const {
  if (kind() == CheckpointKind::kFull)
    for (const CheckpointFile& file : manifest().files)
      for (const CheckpointFile::Tensor& tensor : file.whole_tensors())
        if (tensor.info.key == key) return tensor.sha256;
  return "";
}

}  // namespace renzan
