#pragma once

// The output of containers. An interface, so that tests can replace the server; separate from Api,
// because the controller reads no logs. For one thread at a time.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "renzan/cluster/kubernetes/api/access.h"

namespace renzan::cluster::kubernetes {

struct LogRequest {
  std::string ns, pod, container;
  bool follow = false;                     // until the container ends
  std::optional<int64_t> tail_lines = {};  // only this many lines from the end
};

class PodLogs {
 public:
  virtual ~PodLogs() = default;
  // Passes on the output piece by piece. Throws ApiError; an exception of `take` ends the transfer
  // and is rethrown.
  virtual void Read(const LogRequest& request,
                    const std::function<void(std::string_view piece)>& take) = 0;
};

// Reads from a real server, over a connection of its own.
std::unique_ptr<PodLogs> MakeHttpPodLogs(const Access& access);

}  // namespace renzan::cluster::kubernetes
