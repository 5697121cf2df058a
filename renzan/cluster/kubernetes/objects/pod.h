#pragma once

// What the controller needs to know of a pod.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/objects/amounts.h"

namespace renzan::cluster::kubernetes {

// Exit statuses of the launch contract: work is saved, run it again; and of a process killed by
// SIGKILL.
inline constexpr int kSavedExitCode = 75, kKilledExitCode = 137;

struct Pod {
  std::string ns, name, uid;
  std::string node;       // empty: not bound yet
  std::string scheduler;  // spec.schedulerName
  // The uid of the GangJob that controls it; empty if none does.
  std::string job_uid;
  int attempt = -1, rank = -1;
  Amounts request;
  bool of_node = false;  // a DaemonSet's pod or a static one: it comes and goes with its node
  // When its program was last asked to save its work.
  std::optional<TimeMs> checkpoint_asked;
  bool deleting = false;
  std::optional<TimeMs> told_at;  // when it was told to stop, if it is being deleted
  // All of its containers have ended, or never will run: its resources are free.
  bool ended = false;
  bool running = false;  // all of its containers have been started, and some run
  // Why a container has not started: "ErrImagePull: no such image".
  std::string waiting;
  bool cannot_start = false;  // `waiting` is an error, not progress
  int exit_code = 0;          // once it has ended: the first that is not 0, 137 if none is known
  bool refused = false;       // ended by its node: not admitted, or evicted
  std::string reason;         // how it ended, in a few words: "OOMKilled", "Evicted"
  std::optional<TimeMs> started, finished;
  // Seen to have ended before anybody told it to stop. Times do not say it: those of the API have a
  // resolution of seconds.
  bool ended_by_itself = false;
};

Pod PodFrom(const nlohmann::json& object);

}  // namespace renzan::cluster::kubernetes
