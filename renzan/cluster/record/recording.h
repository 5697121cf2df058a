#pragma once

// A recording: cycles in a file, or in an answer of the leader. A zstd frame for a header, then one
// for each cycle, in order (cycle_json.h), each with a checksum: `zstdcat FILE` prints JSON lines.
// Pure functions, except for what reads files. Thread-safe.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::record {

inline constexpr int kRecordingVersion = 1;

struct RecordingHeader {
  std::string program;  // that decided; "renzan 0.1.0 (build 3f9a0c51d2be)"
  std::string writer;   // which process of that program
  size_t cycles = 0;
};

std::string Compressed(std::string_view text);
// `frames`: cycles, as Compressed(CycleToJson()).
std::string RecordingOf(const RecordingHeader& header, const std::vector<std::string>& frames);

// Calls `take` for each cycle, in order; only one is in memory at a time. Throws Error kNoInput,
// kIo, or kData for anything but a complete recording: another kind of file, a later version, a
// truncated or damaged file.
void ReadRecording(const std::string& path,
                   const std::function<void(const RecordingHeader&, Cycle)>& take);

}  // namespace renzan::cluster::record
