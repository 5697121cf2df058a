#pragma once

// A directory of checkpoints: step-00001234/, step-00002000/ and so on. One process at a time
// writes and removes checkpoints; any process may list them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/checkpoint/manifest.h"

namespace renzan {

// "step-00001234": at least eight digits.
inline constexpr const char* kCheckpointPrefix = "step-";
std::string CheckpointName(int64_t step);

// The step of such a name; nothing for any other name.
std::optional<int64_t> StepOfCheckpointName(std::string_view name);

struct CheckpointEntry {
  std::string name;
  std::string path;
  int64_t step = 0;
  // No value without a valid manifest; then only `problem` and `unreadable` below are set.
  std::optional<CheckpointKind> kind;
  std::string base;  // the name of an incremental one's base
  int64_t unix_ms = 0;
  uint64_t bytes = 0;  // of its own files
  std::string quantization;
  std::string manifest_sha256;
  std::string model_sha256;
  // What is wrong; empty if the manifest and file sizes are valid, and those of the base too. File
  // checksums are not verified.
  std::string problem;
  // Set if `problem` is that something cannot be read (access is denied, an I/O error), so that the
  // checkpoint may be valid: kNoInput or kIo. A file that does not exist is corruption.
  std::optional<ErrorCode> unreadable;

  void SetProblem(const Error& error);  // sets both
};

// Newest step first. Everything under another name is ignored; a directory that does not exist
// holds no checkpoint. Throws Error kNoInput or kIo for one that cannot be read.
std::vector<CheckpointEntry> ListCheckpoints(const std::string& dir);

// One checkpoint under any name. The entry of a saved model has the step from its manifest.
CheckpointEntry DescribeCheckpoint(const std::string& path);

// Removes all valid checkpoints except the `keep` newest, the one named `pinned` (empty: none), and
// their bases. Keeps corrupt ones; removes nothing if one cannot be read. Those after `step` are
// kept but do not count: a run at that step has found them corrupt, which their manifests do not
// show. Returns the names of the removed ones. Failing to remove one is a warning, not an error.
std::vector<std::string> RemoveOldCheckpoints(const std::string& dir, int keep,
                                              const std::string& pinned = "",
                                              int64_t step = INT64_MAX);

// Marks what a killed writer or removal left behind and returns the paths to remove, which may take
// a while. Only for the process that is about to write here, before it does.
std::vector<std::string> MarkLeftoversForDeletion(const std::string& dir,
                                                  const std::string& prefix = kCheckpointPrefix);

// Failing to remove it is a warning, not an error.
void RemoveTree(const std::string& path);

// Renames a checkpoint that cannot be used, or its manifest, to <path>.corrupt, or .corrupt-2 and
// so on. Returns the new path. Throws Error kIo. If it cannot be read, and so may be valid, throws
// kNoInput or kIo and renames nothing.
std::string MoveAside(const std::string& path);

}  // namespace renzan
