#include "renzan/checkpoint/directory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/reader.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kDeleting = ".deleting";
constexpr std::string_view kPartial = ".partial";  // StagedDirectory's

std::vector<std::string> NamesIn(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  if (IsMissing(dir)) return names;
  // increment() fails too if the directory is removed meanwhile.
  for (fs::directory_iterator i(dir, error), end; !error && i != end; i.increment(error))
    names.push_back(i->path().filename().string());
  if (error) FailToRead(error.value(), dir);
  return names;
}

// Renames first, so that a partly removed directory is never taken for a corrupt checkpoint.
bool Remove(const std::string& dir, const std::string& name) {
  const std::string doomed = fmt::format("{}/.{}{}", dir, name, kDeleting);
  if (FileSystem::Get().Rename(dir + "/" + name, doomed) != 0) {
    LogWarning("cannot remove {}/{}: {}", dir, name, std::strerror(errno));
    return false;
  }
  // Make the rename durable before removing files, or a power loss could leave a corrupt checkpoint
  // under the original name.
  FileSystem::Get().SyncDirectory(dir);
  RemoveTree(doomed);
  return true;
}

}  // namespace

std::string CheckpointName(int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

std::optional<int64_t> StepOfCheckpointName(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  if (step < 0 || CheckpointName(step) != name) return std::nullopt;
  return step;
}

void CheckpointEntry::SetProblem(const Error& error) {
  problem = error.what();
  if (error.code() != ErrorCode::kData && !error.is_missing_file()) unreadable = error.code();
}

CheckpointEntry DescribeCheckpoint(const std::string& path) {
  fs::path trimmed(path);
  if (!trimmed.has_filename()) trimmed = trimmed.parent_path();
  CheckpointEntry entry{.name = trimmed.filename().string(), .path = path};
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
  for (const std::string& name : NamesIn(dir)) {
    if (!StepOfCheckpointName(name)) continue;
    CheckpointEntry entry = DescribeCheckpoint(dir + "/" + name);
    // A checkpoint removed meanwhile by its writer is not corrupt.
    if (entry.problem.empty() || entry.unreadable || !IsMissing(entry.path))
      entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step > b.step; });
  return entries;
}

std::vector<std::string> RemoveOldCheckpoints(const std::string& dir, int keep,
                                              const std::string& pinned) {
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
    const bool newest = keep > 0;
    if (newest) --keep;
    if (newest || entry.name == pinned) {
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
    if (!Remove(dir, entry.name)) break;
    removed.push_back(entry.name);
  }
  return removed;
}

std::vector<std::string> MarkLeftoversForDeletion(const std::string& dir) {
  std::vector<std::string> paths;
  for (const std::string& name : NamesIn(dir)) {
    if (!name.starts_with(fmt::format(".{}", kPrefix))) continue;
    std::string path = dir + "/" + name;
    // Rename it, so that writing this step again does not find a partly removed directory.
    if (name.ends_with(kPartial) &&
        FileSystem::Get().Rename(path, path + std::string(kDeleting)) == 0)
      path += kDeleting;
    if (path.ends_with(kDeleting)) paths.push_back(path);
  }
  return paths;
}

void RemoveTree(const std::string& path) {
  if (FileSystem::Get().RemoveTree(path) != 0)
    LogWarning("cannot remove {}: {}", path, std::strerror(errno));
}

std::string MoveAside(const std::string& path) {
  const CheckpointEntry entry = DescribeCheckpoint(path);
  if (entry.unreadable)
    Fail(*entry.unreadable, "{} is not moved aside, because it may be valid: {}", path,
         entry.problem);
  fs::path from(path);
  if (!from.has_filename()) from = from.parent_path();
  const std::string stem = from.string() + ".corrupt";
  std::string to = stem;
  for (int i = 2; !IsMissing(to); ++i) to = fmt::format("{}-{}", stem, i);
  if (FileSystem::Get().Rename(from.string(), to) != 0)
    Fail(ErrorCode::kIo, "cannot rename {} to {}: {}", path, to, std::strerror(errno));
  return to;
}

}  // namespace renzan
