#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/base/sha256.h"
#include "renzan/capi/guard.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/checkpoint/writer.h"
#include "renzan/storage/attempt_lock.h"
#include "renzan/storage/storage.h"

using namespace renzan;
using namespace renzan::capi;

struct renzan_checkpoints {
  std::string directory;
  std::unique_ptr<DirectoryLock> lock;
};

namespace {

// Files of about this size are verified and read one at a time.
constexpr uint64_t kFileBytes = uint64_t{1} << 30;

TensorInfo InfoOf(const renzan_tensor& tensor) {
  NeedsArgument(tensor.key, "tensors[i].key");
  NeedsArgument(tensor.dtype, "tensors[i].dtype");
  if (tensor.dims > 0) NeedsArgument(tensor.shape, "tensors[i].shape");
  TensorInfo info{.key = tensor.key, .shape = {tensor.shape, tensor.shape + tensor.dims}};
  try {
    info.dtype = ParseDType(tensor.dtype);
    CheckShape(info);
  } catch (const Error& error) {
    Fail(ErrorCode::kUsage, "tensor '{}': {}", info.key, error.what());
  }
  if (NumBytes(info) != tensor.bytes)
    Fail(ErrorCode::kUsage, "tensor '{}' has {} bytes, but {} {} needs {}", info.key, tensor.bytes,
         Name(info.dtype), ShapeText(info.shape), NumBytes(info));
  if (tensor.bytes > 0) NeedsArgument(tensor.data, "tensors[i].data");
  return info;
}

TensorSource SourceOf(const renzan_tensor& tensor) {
  TensorInfo info = InfoOf(tensor);
  return {
      std::move(info.key), std::move(info.shape), info.dtype,
      [data = static_cast<const std::byte*>(tensor.data)](size_t offset, std::span<std::byte> out) {
        std::memcpy(out.data(), data + offset, out.size());
      }};
}

std::vector<CheckpointFile> WriteFiles(const std::string& location,
                                       std::span<const renzan_tensor> tensors, bool hash) {
  std::vector<std::vector<TensorSource>> contents(1);
  uint64_t bytes = 0;
  std::set<std::string> keys;
  for (const renzan_tensor& tensor : tensors) {
    TensorSource source = SourceOf(tensor);
    if (!keys.insert(source.key).second)
      Fail(ErrorCode::kUsage, "tensor '{}' is given twice", source.key);
    if (bytes > 0 && bytes + tensor.bytes > kFileBytes) {
      contents.emplace_back();
      bytes = 0;
    }
    contents.back().push_back(std::move(source));
    bytes += tensor.bytes;
  }
  std::vector<CheckpointFile> files;
  for (size_t i = 0; i < contents.size(); ++i)
    files.push_back(WriteCheckpointFile(
        location, i == 0 ? "state.safetensors" : fmt::format("state.{}.safetensors", i),
        contents[i], {.hash_tensors = hash}));
  return files;
}

void CopyDigest(const std::string& digest, char out[65]) {
  if (out != nullptr) std::memcpy(out, digest.c_str(), digest.size() + 1);
}

}  // namespace

renzan_status renzan_checkpoints_open(const char* directory, renzan_checkpoints** checkpoints) {
  return Guard([&] {
    NeedsArgument(directory, "directory");
    NeedsArgument(checkpoints, "checkpoints");
    const std::string dir = NormalizedPath(directory);
    auto opened = std::make_unique<renzan_checkpoints>(
        dir, LockForAttempt(dir, fmt::format("process {} on {}", getpid(), HostName()),
                            JobAttempt::FromEnvironment()));
    for (const std::string& path : MarkLeftoversForDeletion(dir)) RemoveTree(path);
    *checkpoints = opened.release();
  });
}

void renzan_checkpoints_close(renzan_checkpoints* checkpoints) {
  Guard([&] { delete checkpoints; });
}

renzan_status renzan_checkpoints_write(renzan_checkpoints* checkpoints, int64_t step,
                                       const renzan_tensor* tensors, size_t num_tensors,
                                       const renzan_text* run, size_t num_run, const char* config,
                                       int hash, char model_sha256[65]) {
  return Guard([&] {
    NeedsArgument(checkpoints, "checkpoints");
    if (num_tensors > 0) NeedsArgument(tensors, "tensors");
    if (num_run > 0) NeedsArgument(run, "run");
    if (step < 0) Fail(ErrorCode::kUsage, "step {} is negative", step);
    CheckpointManifest manifest{.step = step, .unix_ms = SystemClock().UnixMs()};
    for (size_t i = 0; i < num_run; ++i) {
      NeedsArgument(run[i].key, "run[i].key");
      NeedsArgument(run[i].value, "run[i].value");
      manifest.run[run[i].key] = run[i].value;
    }
    manifest.config = config == nullptr ? "" : config;
    const std::string path = checkpoints->directory + "/" + CheckpointName(step);
    checkpoints->lock->Check();
    if (Storage::Of(path).HasTree(path, kCheckpointManifestName))
      LogWarning("{} exists but was not resumed from: moved to {}", path, MoveAside(path));
    CheckpointWriter writer(path);
    manifest.files = WriteFiles(writer.location(), {tensors, num_tensors}, hash != 0);
    const std::string digest = ModelSha256(manifest.files, step);
    writer.Commit(std::move(manifest));
    CopyDigest(digest, model_sha256);
  });
}

renzan_status renzan_checkpoints_remove_old(renzan_checkpoints* checkpoints, int keep) {
  return Guard([&] {
    NeedsArgument(checkpoints, "checkpoints");
    if (keep < 1)
      Fail(ErrorCode::kUsage, "keep {}: at least one is needed", Counted(keep, "checkpoint"));
    RemoveOldCheckpoints(checkpoints->directory, keep);
  });
}

renzan_status renzan_checkpoints_move_aside(renzan_checkpoints* checkpoints, int64_t step) {
  return Guard([&] {
    NeedsArgument(checkpoints, "checkpoints");
    const std::string path = checkpoints->directory + "/" + CheckpointName(step);
    LogWarning("moved corrupt {} to {}", path, MoveAside(path));
  });
}

renzan_status renzan_model_sha256(int64_t step, const renzan_tensor* tensors, size_t num_tensors,
                                  char model_sha256[65]) {
  return Guard([&] {
    if (num_tensors > 0) NeedsArgument(tensors, "tensors");
    NeedsArgument(model_sha256, "model_sha256");
    CheckpointFile file;
    for (size_t i = 0; i < num_tensors; ++i)
      file.tensors.push_back(
          {InfoOf(tensors[i]),
           Sha256Hex({static_cast<const char*>(tensors[i].data), tensors[i].bytes})});
    CopyDigest(ModelSha256({&file, 1}, step), model_sha256);
  });
}
