#include "renzan/checkpoint/checkpoint_files.h"

#include <optional>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"
#include "renzan/checkpoint/block_key.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr char kRemedy[] = "restore it from a copy, or use another checkpoint of its run";

void CheckSize(const std::string& path, uint64_t bytes, uint64_t expected) {
  if (bytes != expected)
    Fail(ErrorCode::kData, "{} is corrupt: it has {} bytes, but the manifest says {}: {}", path,
         bytes, expected, kRemedy);
}

// Earlier builds saved Adagrad's state of a block of one column as [rows]: the shape of a state
// that belongs to the row and is the same in all column blocks.
TensorInfo WithItsColumn(TensorInfo info) {
  if (info.shape.size() != 1) return info;
  const std::optional<TableTensorKey> parts = ParseTableTensorKey(info.key);
  if (parts && parts->block.column_blocks > 1 && parts->rest == ".weight/adagrad")
    info.shape.push_back(1);
  return info;
}

}  // namespace

CheckpointFiles::CheckpointFiles(std::string dir, bool verify)
    : CheckpointFiles(dir, CheckpointManifest::Read(dir), verify) {}

CheckpointFiles::CheckpointFiles(std::string dir, CheckpointManifest manifest, bool verify)
    : dir_(std::move(dir)), verify_(verify), manifest_(std::move(manifest)) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : manifest_.files) names.push_back(file.name);
  const std::vector<uint64_t> sizes = Storage::Of(dir_).Sizes(dir_, names);
  for (size_t i = 0; i < manifest_.files.size(); ++i) {
    const CheckpointFile& file = manifest_.files[i];
    CheckSize(dir_ + "/" + file.name, sizes[i], file.bytes);
    for (const CheckpointFile::Tensor& tensor : file.tensors) {
      tensors_[tensor.info.key] = WithItsColumn(tensor.info);
      file_of_[tensor.info.key] = i;
    }
  }
  open_.resize(manifest_.files.size());
}

const SafetensorsReader& CheckpointFiles::Open(size_t index) {
  if (open_[index] != nullptr) return *open_[index];
  const CheckpointFile& expected = manifest_.files[index];
  const std::string path = dir_ + "/" + expected.name;
  auto reader = std::make_unique<SafetensorsReader>(path);
  CheckSize(path, reader->bytes().size(), expected.bytes);
  if (verify_) {
    // Reads the file rather than the map, where an I/O error would raise SIGBUS.
    const std::string sum = Xxh128OfFile(reader->local_path());
    if (sum != expected.xxh128)
      Fail(ErrorCode::kData, "{} is corrupt: its XXH128 is {}, but the manifest says {}: {}", path,
           sum, expected.xxh128, kRemedy);
  }
  for (const CheckpointFile::Tensor& tensor : expected.tensors) {
    const SafetensorsReader::Tensor* found = reader->Find(tensor.info.key);
    if (found == nullptr || found->info != tensor.info)
      Fail(ErrorCode::kData, "{} does not hold tensor '{}' {} {} that the manifest lists", path,
           tensor.info.key, Name(tensor.info.dtype), ShapeText(tensor.info.shape));
  }
  open_[index] = std::move(reader);
  return *open_[index];
}

const SafetensorsReader::Tensor& CheckpointFiles::Tensor(const std::string& key) {
  const auto file = file_of_.find(key);
  CHECK_MSG(file != file_of_.end(), "{} has no tensor '{}'", dir_, key);
  return *Open(file->second).Find(key);
}

void CheckpointFiles::VerifyAll() {
  for (size_t i = 0; i < manifest_.files.size(); ++i) {
    const SafetensorsReader& reader = Open(i);
    for (const auto& [info, sha256] : manifest_.files[i].tensors) {
      if (sha256.empty()) continue;
      const std::span<const std::byte> bytes = reader.Find(info.key)->bytes;
      const std::string sum =
          Sha256Hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      if (sum != sha256)
        Fail(ErrorCode::kData,
             "{} is corrupt: tensor '{}' has the SHA-256 {}, but the manifest says {}: {}",
             reader.path(), info.key, sum, sha256, kRemedy);
    }
  }
}

}  // namespace renzan
