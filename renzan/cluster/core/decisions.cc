#include "renzan/cluster/core/decisions.h"

#include <fmt/ranges.h>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan::cluster {

const char* NameOf(StopReason reason) {
  switch (reason) {
    case StopReason::kPreempted:
      return "preempted";
    case StopReason::kTimeShared:
      return "time-shared";
    case StopReason::kReclaimed:
      return "reclaimed";
    case StopReason::kReservation:
      return "reservation";
    case StopReason::kNodeLeaving:
      return "node leaving";
    case StopReason::kOverCap:
      return "over cap";
    case StopReason::kGrandChallenge:
      return "grand challenge";
    case StopReason::kRequested:
      return "requested";
  }
  CHECK(false);
}

std::string TextOf(const Stop& stop) {
  std::string text = NameOf(stop.reason);
  if (stop.on_behalf_of != 0) text += fmt::format(" for job {}", stop.on_behalf_of);
  if (!stop.requested_by.empty()) text += " by " + stop.requested_by;
  return text;
}

std::string TextOf(const Resize& resize, const Snapshot& snapshot) {
  const Placement& before = snapshot.Find(resize.job)->placement;
  std::vector<std::string> leaving;
  for (const Placed& placed : before)
    if (const Node& node = snapshot.nodes[placed.node]; node.state == NodeState::kDraining)
      leaving.push_back(node.name);
  std::string text;
  if (!leaving.empty())
    text = fmt::format("moved off {}, which {} leaving", fmt::join(leaving, ", "),
                       leaving.size() == 1 ? "is" : "are");
  const int workers = NumWorkers(before), wanted = NumWorkers(resize.target);
  if (workers != wanted)
    text += fmt::format("{}from {} to {}", text.empty() ? "" : ", ", Counted(workers, "worker"),
                        wanted);
  if (text.empty()) text = "moved to other nodes";
  if (resize.on_behalf_of != 0) text += fmt::format(" for job {}", resize.on_behalf_of);
  return text;
}

const char* NameOf(WaitReason reason) {
  switch (reason) {
    case WaitReason::kInfeasible:
      return "infeasible";
    case WaitReason::kBackoff:
      return "backoff";
    case WaitReason::kQueueLimit:
      return "queue limit";
    case WaitReason::kUserCap:
      return "user cap";
    case WaitReason::kGuaranteedQuota:
      return "guaranteed quota";
    case WaitReason::kResources:
      return "resources";
    case WaitReason::kFragmented:
      return "fragmented";
    case WaitReason::kReserved:
      return "reserved";
    case WaitReason::kPipelined:
      return "pipelined";
    case WaitReason::kNodesBooting:
      return "nodes booting";
    case WaitReason::kWithheld:
      return "withheld";
  }
  CHECK(false);
}

}  // namespace renzan::cluster
