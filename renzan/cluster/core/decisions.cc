#include "renzan/cluster/core/decisions.h"

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
