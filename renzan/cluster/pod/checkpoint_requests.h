#pragma once

// Requests for a checkpoint: the controller annotates the pod, and a downward-API volume shows the
// annotation as the file `checkpoint-request`. Any text that differs from the previous one is a
// request, except the first one and an empty one. The kubelet replaces all files of the volume at
// once, by renaming a link to their directory.
//
// The volume may be absent or appear later. Not thread-safe.

#include <string>

#include "renzan/base/process/descriptor.h"

namespace renzan::cluster::pod {

class CheckpointRequests {
 public:
  // What is in `directory` now is not a request.
  explicit CheckpointRequests(const std::string& directory);

  // Readable (poll) when the directory has changed; -1 if the kernel cannot tell. It may miss
  // changes: call Take() every few seconds, too.
  int fd() const { return changes_.get(); }
  // Whether there has been a request since the last call.
  bool Take();

 private:
  void Watch();
  std::string Read() const;

  std::string directory_;
  Descriptor changes_;  // inotify
  std::string last_;    // not empty once there was a text
};

}  // namespace renzan::cluster::pod
