#pragma once

// A directory of checkpoints: step-00001234/, step-00002000/ and so on, written and removed by one
// process at a time, and listed by any.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/checkpoint/manifest.h"

namespace renzan {

// "step-00001234": at least eight digits.
std::string CheckpointName(int64_t step);

// The step that such a name stands for; nothing for any other name.
std::optional<int64_t> StepOfCheckpointName(std::string_view name);

struct CheckpointEntry {
  std::string name;
  std::string path;
  int64_t step = 0;
  // Without a value where the manifest cannot be read; then so is what follows, but `problem`.
  std::optional<CheckpointKind> kind;
  std::string base;  // an incremental one's base's name
  int64_t unix_ms = 0;
  uint64_t bytes = 0;  // of its own files
  std::string quantization;
  std::string manifest_sha256;
  std::string model_sha256;
  // Empty when the manifest and the files' sizes are valid, for an incremental one also its base's;
  // else what is wrong. Checksums of files are not verified.
  std::string problem;
  // `problem` is that the disk could not read it: it may be valid, and another attempt may read it.
  bool io_error = false;
};

// Newest step first. Everything under another name is ignored; a directory that does not exist
// holds no checkpoint. Throws Error kNoInput for one that cannot be read.
std::vector<CheckpointEntry> ListCheckpoints(const std::string& dir);

// One checkpoint, under whatever name: a saved model's entry has the step of its manifest.
CheckpointEntry DescribeCheckpoint(const std::string& path);

// Removes all valid checkpoints but the `keep` newest, the one named `pinned` (empty: none), and
// the bases that these need. Corrupt ones stay; while the disk cannot read one, all do. Returns the
// names of those removed. What cannot be removed is a warning, not an error.
std::vector<std::string> RemoveOldCheckpoints(const std::string& dir, int keep,
                                              const std::string& pinned = "");

// Gives up what a writer or a removal that was killed left half-done, and returns the paths that
// are to be removed, which may take time. Only for who writes here now, and before it does.
std::vector<std::string> GiveUpLeftovers(const std::string& dir);

// What cannot be removed is a warning, not an error.
void RemoveTree(const std::string& path);

// Gives up the name of a checkpoint that cannot be used: it becomes <path>.corrupt, or .corrupt-2
// and so on. Returns the new path. Throws Error kIo.
std::string MoveAside(const std::string& path);

}  // namespace renzan
