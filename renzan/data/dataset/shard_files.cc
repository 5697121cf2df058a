#include "renzan/data/dataset/shard_files.h"

#include <span>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/sha256.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// The content of a shard's checksums.npy, after verifying its SHA-256.
std::vector<uint64_t> ReadBlockChecksums(const std::string& path, const ShardEntry& entry) {
  const auto found = entry.files.find(kBlockChecksumsFile);
  const LocalFile file = Storage::Of(path).Fetch(path);
  const std::string bytes = ReadFile(file.local_path());
  if (found == entry.files.end() || Sha256Hex(bytes) != found->second.sha256)
    Fail(ErrorCode::kData,
         "{} is corrupt: its SHA-256 is not what dataset.yaml says; restore it or import the data "
         "again",
         path);
  const NpyArray array(file.local_path());
  const std::span<const uint64_t> values = array.values<uint64_t>();
  return {values.begin(), values.end()};
}

uint64_t NumBlocks(uint64_t bytes) {
  return (bytes + kChecksumBlockBytes - 1) / kChecksumBlockBytes;
}

}  // namespace

NpyArray OpenArray(const std::string& directory, const std::string& shard, const ShardEntry& entry,
                   const std::string& name, NpyType type, std::vector<int64_t> shape,
                   const std::string& local_path) {
  const std::string path = fmt::format("{}/{}/{}", directory, shard, name);
  const auto found = entry.files.find(name);
  if (found == entry.files.end())
    Fail(ErrorCode::kData, "{}/dataset.yaml: {} has no entry for {}", directory, shard, name);
  const FileEntry& file = found->second;
  // -1 means any length.
  if (!shape.empty() && shape[0] < 0 && file.shape.size() == 1) shape[0] = file.shape[0];
  if (file.type() != type || file.shape != shape)
    Fail(ErrorCode::kData, "{}/dataset.yaml: {}/{} should be {} {}, but is declared as {} {}",
         directory, shard, name, NpyTypeName(type), FormatShape(shape), file.dtype,
         FormatShape(file.shape));
  NpyArray array(local_path);
  if (array.type() != type || array.shape() != shape)
    Fail(ErrorCode::kData, "{}: holds {} {}, but dataset.yaml declares {} {}", path,
         NpyTypeName(array.type()), FormatShape(array.shape()), file.dtype,
         FormatShape(file.shape));
  return array;
}

NpyArray OpenWholeArray(const std::string& path, const FileEntry& entry) {
  const LocalFile file = Storage::Of(path).Fetch(path);
  if (Sha256OfFile(file.local_path()) != entry.sha256)
    Fail(ErrorCode::kData,
         "{} is corrupt: its SHA-256 is not what dataset.yaml says; restore it or import the data "
         "again",
         path);
  NpyArray array(file.local_path());
  if (array.type() != entry.type() || array.shape() != entry.shape)
    Fail(ErrorCode::kData, "{}: holds {} {}, but dataset.yaml declares {} {}", path,
         NpyTypeName(array.type()), FormatShape(array.shape()), entry.dtype,
         FormatShape(entry.shape));
  return array;
}

ShardChecksums::ShardChecksums(const std::string& folder, const ShardEntry& entry)
    : folder_(folder),
      entry_(entry),
      checksums_(ReadBlockChecksums(fmt::format("{}/{}", folder, kBlockChecksumsFile), entry)) {}

std::vector<uint64_t> ShardChecksums::Of(const std::string& name, uint64_t file_bytes) const {
  uint64_t first = 0;
  for (const auto& [other, file] : entry_.files) {
    if (other == name) break;
    if (other != kBlockChecksumsFile) first += NumBlocks(file.bytes());
  }
  const uint64_t count = NumBlocks(file_bytes);
  if (first + count > checksums_.size())
    Fail(ErrorCode::kData, "{}/{}: lacks checksums for part of {}", folder_, kBlockChecksumsFile,
         name);
  const auto begin = checksums_.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace renzan
