#pragma once

// What the kubelet passes on about a container that has ended (its termination message), in one
// line of JSON:
//
//   {"exit_code": 137, "signal": "SIGKILL", "message": "running at step 120 of 5000"}
//
// Pure functions, but for the one that writes.

#include <optional>
#include <string>
#include <string_view>

#include "renzan/base/process/process_end.h"

namespace renzan::cluster::pod {

// The kubelet keeps this much of it.
inline constexpr size_t kMaxTerminationBytes = 4096;

struct ContainerEnd {
  int exit_code = 0;    // of pod-run
  int signal = 0;       // that ended the command; 0: none did
  std::string message;  // any bytes
};

// At most kMaxTerminationBytes; the message is cut if necessary. Characters that a terminal would
// not show are left out or escaped.
std::string TerminationMessage(const ContainerEnd& end);

// How the command ended, in its own words: what its last status.json says ("failed at step 7 of
// 100"; `status` is its text, nothing if the command wrote none) and, if it failed, its last line
// on stderr. Without either, how the process ended.
std::string DescribeContainerEnd(const ProcessEnd& end, const std::optional<std::string>& status,
                                 std::string_view last_line);

// Does nothing if the file does not exist or cannot be written: then nobody asked for it.
void WriteTerminationMessage(const std::string& path, const ContainerEnd& end);

}  // namespace renzan::cluster::pod
