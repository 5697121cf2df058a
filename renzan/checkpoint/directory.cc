#include "renzan/checkpoint/directory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

// The last part of a path that may end with '/'.
std::string NameOf(const std::string& path) {
  fs::path trimmed(path);
  if (!trimmed.has_filename()) trimmed = trimmed.parent_path();
  return trimmed.filename().string();
}

// The names of a checkpoint's files; nothing if it has no readable manifest.
std::optional<std::vector<std::string>> FilesOf(const std::string& path) {
  try {
    std::vector<std::string> names;
    for (const CheckpointFile& file : CheckpointManifest::Read(path).files)
      names.push_back(file.name);
    return names;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string CheckpointName(int64_t step) { return fmt::format("{}{:08}", kCheckpointPrefix, step); }

std::optional<int64_t> StepOfCheckpointName(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) return std::nullopt;
  int64_t step = -1;
  std::from_chars(name.data() + std::string_view(kCheckpointPrefix).size(),
                  name.data() + name.size(), step);
  if (step < 0 || CheckpointName(step) != name) return std::nullopt;
  return step;
}

void CheckpointEntry::SetProblem(const Error& error) {
  problem = error.what();
  if (error.code() != ErrorCode::kData && !error.is_missing_file()) unreadable = error.code();
}

CheckpointEntry DescribeCheckpoint(const std::string& path) {
  CheckpointEntry entry{.name = NameOf(path), .path = path};
  const std::optional<int64_t> named_step = StepOfCheckpointName(entry.name);
  entry.step = named_step.value_or(0);
  try {
    const CheckpointManifest manifest = CheckpointManifest::Read(path);
    entry.step = manifest.step;
    entry.kind = manifest.kind;
    if (manifest.base) entry.base = manifest.base->name;
    entry.unix_ms = manifest.unix_ms;
    entry.bytes = manifest.bytes();
    entry.quantization = manifest.quantization;
    entry.manifest_sha256 = manifest.manifest_sha256;
    entry.model_sha256 = manifest.model_sha256;
    if (named_step && *named_step != manifest.step)
      Fail(ErrorCode::kData, "{} holds step {}: it was renamed", path, manifest.step);
    CheckpointReader(path, false);
  } catch (const Error& error) {
    entry.SetProblem(error);
  }
  if (named_step) entry.step = *named_step;
  return entry;
}

std::vector<CheckpointEntry> ListCheckpoints(const std::string& dir) {
  std::vector<CheckpointEntry> entries;
  Storage& storage = Storage::Of(dir);
  for (const std::string& name : storage.Names(dir)) {
    if (!StepOfCheckpointName(name)) continue;
    CheckpointEntry entry = DescribeCheckpoint(dir + "/" + name);
    // A checkpoint removed meanwhile by its writer is not corrupt.
    if (entry.problem.empty() || entry.unreadable ||
        storage.HasTree(entry.path, kCheckpointManifestName))
      entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step > b.step; });
  return entries;
}

std::vector<std::string> RemoveOldCheckpoints(const std::string& dir, int keep,
                                              const std::string& pinned, int64_t step) {
  CHECK(keep >= 1);
  std::set<std::string> kept;
  std::vector<CheckpointEntry> old;
  const std::vector<CheckpointEntry> entries = ListCheckpoints(dir);
  // A checkpoint that cannot be read now may turn out valid and need its base, so remove nothing.
  for (const CheckpointEntry& entry : entries)
    if (entry.unreadable) {
      LogWarning("old checkpoints are not removed: {}", entry.problem);
      return {};
    }
  for (const CheckpointEntry& entry : entries) {
    if (!entry.problem.empty()) continue;
    const bool newest = keep > 0 && entry.step <= step;
    if (newest) --keep;
    if (newest || entry.step > step || entry.name == pinned) {
      kept.insert(entry.name);
      kept.insert(entry.base);
    } else if (!kept.contains(entry.name)) {
      old.push_back(entry);
    }
  }
  // Remove increments before their bases, so that an interruption leaves no increment without its
  // base.
  std::stable_partition(old.begin(), old.end(), [](const CheckpointEntry& entry) {
    return entry.kind == CheckpointKind::kIncremental;
  });
  std::vector<std::string> removed;
  for (const CheckpointEntry& entry : old) {
    try {
      Storage::Of(dir).RemoveTree(entry.path, kCheckpointManifestName);
    } catch (const Error& error) {
      LogWarning("an old checkpoint is not removed: {}", error.what());
      break;
    }
    removed.push_back(entry.name);
  }
  return removed;
}

std::vector<std::string> MarkLeftoversForDeletion(const std::string& dir,
                                                  const std::string& prefix) {
  return Storage::Of(dir).Leftovers(dir, prefix, kCheckpointManifestName, FilesOf);
}

void RemoveTree(const std::string& path) {
  try {
    Storage::Of(path).Remove(path);
  } catch (const Error& error) {
    LogWarning("{}", error.what());
  }
}

std::string MoveAside(const std::string& path) {
  const CheckpointEntry entry = DescribeCheckpoint(path);
  if (entry.unreadable)
    Fail(*entry.unreadable, "{} is not moved aside, because it may be valid: {}", path,
         entry.problem);
  return Storage::Of(path).SetAside(path, kCheckpointManifestName);
}

}  // namespace renzan
