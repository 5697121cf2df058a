#include <memory>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/capi/guard.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/storage/storage.h"

using namespace renzan;
using namespace renzan::capi;

struct renzan_checkpoint_list {
  std::vector<CheckpointEntry> entries;
};

struct renzan_checkpoint {
  CheckpointReader reader;
  std::vector<std::string> keys;
  std::vector<std::pair<std::string, std::string>> run;

  explicit renzan_checkpoint(const std::string& path)
      : reader(path), keys(reader.keys()), run(reader.run().begin(), reader.run().end()) {}
};

namespace {

void CheckIndex(size_t index, size_t size, const char* what) {
  if (index >= size)
    Fail(ErrorCode::kUsage, "there is no {} {}, but there are {}", what, index, size);
}

// The checkpoint at `path`, or the newest valid one in that directory.
std::string Find(const std::string& path) {
  if (Storage::Of(path).HasTree(path, kCheckpointManifestName) &&
      !Storage::Of(path).IsMissing(path + "/" + kCheckpointManifestName))
    return path;
  std::string problem;
  for (const CheckpointEntry& entry : ListCheckpoints(path)) {
    if (entry.problem.empty()) return entry.path;
    if (entry.unreadable)
      Fail(*entry.unreadable, "{}: {}; it may be valid, so try again once it can be read",
           entry.path, entry.problem);
    LogWarning("skipping {}: {}", entry.path, entry.problem);
    problem = entry.problem;
  }
  if (!problem.empty()) Fail(ErrorCode::kData, "no checkpoint in {} is valid", path);
  Fail(ErrorCode::kNoInput, "{} is not a checkpoint and contains none", path);
}

}  // namespace

renzan_status renzan_checkpoint_list_create(const char* directory, renzan_checkpoint_list** list) {
  return Guard([&] {
    NeedsArgument(directory, "directory");
    NeedsArgument(list, "list");
    *list = new renzan_checkpoint_list{ListCheckpoints(directory)};
  });
}

void renzan_checkpoint_list_destroy(renzan_checkpoint_list* list) { delete list; }

size_t renzan_checkpoint_list_size(const renzan_checkpoint_list* list) {
  return list == nullptr ? 0 : list->entries.size();
}

renzan_status renzan_checkpoint_list_get(const renzan_checkpoint_list* list, size_t index,
                                         renzan_checkpoint_entry* entry) {
  return Guard([&] {
    NeedsArgument(list, "list");
    NeedsArgument(entry, "entry");
    CheckIndex(index, list->entries.size(), "checkpoint");
    const CheckpointEntry& from = list->entries[index];
    const ErrorCode problem = from.unreadable.value_or(ErrorCode::kData);
    *entry = {.name = from.name.c_str(),
              .path = from.path.c_str(),
              .step = from.step,
              .unix_ms = from.unix_ms,
              .bytes = from.bytes,
              .status = from.problem.empty() ? RENZAN_OK : static_cast<renzan_status>(problem),
              .problem = from.problem.c_str()};
  });
}

renzan_status renzan_checkpoint_open(const char* path, renzan_checkpoint** checkpoint) {
  return Guard([&] {
    NeedsArgument(path, "path");
    NeedsArgument(checkpoint, "checkpoint");
    *checkpoint = new renzan_checkpoint(Find(path));
  });
}

void renzan_checkpoint_close(renzan_checkpoint* checkpoint) { delete checkpoint; }

const char* renzan_checkpoint_path(const renzan_checkpoint* checkpoint) {
  return checkpoint->reader.dir().c_str();
}
int64_t renzan_checkpoint_step(const renzan_checkpoint* checkpoint) {
  return checkpoint->reader.step();
}
const char* renzan_checkpoint_model_sha256(const renzan_checkpoint* checkpoint) {
  return checkpoint->reader.manifest().model_sha256.c_str();
}
const char* renzan_checkpoint_config(const renzan_checkpoint* checkpoint) {
  return checkpoint->reader.config().c_str();
}
size_t renzan_checkpoint_num_run(const renzan_checkpoint* checkpoint) {
  return checkpoint->run.size();
}
size_t renzan_checkpoint_num_tensors(const renzan_checkpoint* checkpoint) {
  return checkpoint->keys.size();
}

renzan_status renzan_checkpoint_run(const renzan_checkpoint* checkpoint, size_t index,
                                    renzan_text* text) {
  return Guard([&] {
    NeedsArgument(checkpoint, "checkpoint");
    NeedsArgument(text, "text");
    CheckIndex(index, checkpoint->run.size(), "text");
    *text = {checkpoint->run[index].first.c_str(), checkpoint->run[index].second.c_str()};
  });
}

renzan_status renzan_checkpoint_tensor(const renzan_checkpoint* checkpoint, size_t index,
                                       renzan_tensor* tensor) {
  return Guard([&] {
    NeedsArgument(checkpoint, "checkpoint");
    NeedsArgument(tensor, "tensor");
    CheckIndex(index, checkpoint->keys.size(), "tensor");
    const TensorInfo& info = checkpoint->reader.Info(checkpoint->keys[index]);
    *tensor = {.key = info.key.c_str(),
               .dtype = Name(info.dtype).data(),
               .shape = info.shape.data(),
               .dims = info.shape.size(),
               .data = nullptr,
               .bytes = NumBytes(info)};
  });
}

renzan_status renzan_checkpoint_read(renzan_checkpoint* checkpoint, const char* key, void* out,
                                     size_t bytes) {
  return Guard([&] {
    NeedsArgument(checkpoint, "checkpoint");
    NeedsArgument(key, "key");
    if (bytes > 0) NeedsArgument(out, "out");
    const TensorInfo& info = checkpoint->reader.Info(key);
    if (bytes != NumBytes(info))
      Fail(ErrorCode::kUsage, "tensor '{}' has {} bytes, not {}", key, NumBytes(info), bytes);
    checkpoint->reader.ReadBytes(key, 0, {static_cast<std::byte*>(out), bytes});
  });
}

renzan_status renzan_checkpoint_verify(renzan_checkpoint* checkpoint) {
  return Guard([&] {
    NeedsArgument(checkpoint, "checkpoint");
    checkpoint->reader.VerifyAll();
  });
}
