#include "renzan/cluster/kubernetes/objects/pod.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "renzan/base/escape.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

// Assumed when nothing says how a container ended: its node is gone, or it was evicted before it
// started.
constexpr int kKilled = kKilledExitCode;

int LabelNumber(const json& object, const char* label) {
  const std::string text = TextAt(object, {"metadata", "labels", label});
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The kubelet's reason (one word), and the termination message that `renzan pod-run` has left
// (termination_message.h); "Error" adds nothing to that.
std::string ReasonOf(const json& end) {
  constexpr size_t kLongest = 300;
  const std::string word = TextAt(end, {"reason"});
  const json message = json::parse(TextAt(end, {"message"}), nullptr, /*allow_exceptions=*/false);
  std::string words = message.is_object() ? ShortText(TextAt(message, {"message"}), kLongest) : "";
  if (words.empty()) return word;
  for (char& c : words)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return word.empty() || word == "Error" ? words : word + ": " + words;
}

void ReadContainers(const json& statuses, Pod& pod, size_t containers) {
  size_t terminated = 0;
  for (const json& status : statuses) {
    if (const json& waits = At(status, {"state", "waiting"}); waits.is_object()) {
      const std::string reason = TextAt(waits, {"reason"}), message = TextAt(waits, {"message"});
      const bool is_wrong = reason != "ContainerCreating" && reason != "PodInitializing";
      if (pod.waiting.empty() || (is_wrong && !pod.cannot_start))
        pod.waiting = message.empty() ? reason : reason + ": " + message;
      pod.cannot_start |= is_wrong;
    }
    const json& end = At(status, {"state", "terminated"});
    if (const auto begun = ParseTime(TextAt(status, {"state", "running", "startedAt"})))
      pod.started = std::min(pod.started.value_or(*begun), *begun);
    if (!end.is_object()) continue;
    ++terminated;
    const int code = static_cast<int>(NumberAt(end, {"exitCode"}, kKilled));
    if (pod.exit_code == 0 && code != 0) {
      pod.exit_code = code;
      pod.reason = ReasonOf(end);
    }
    if (const auto begun = ParseTime(TextAt(end, {"startedAt"})); begun && *begun > 0)
      pod.started = std::min(pod.started.value_or(*begun), *begun);
    if (const auto finished = ParseTime(TextAt(end, {"finishedAt"})))
      pod.finished = std::max(pod.finished.value_or(0), *finished);
  }
  // Long before a deleted pod's object is gone.
  pod.ended = containers > 0 && terminated >= containers;
}

}  // namespace

Pod PodFrom(const json& object) {
  Pod pod{.ns = TextAt(object, {"metadata", "namespace"}),
          .name = TextAt(object, {"metadata", "name"}),
          .uid = TextAt(object, {"metadata", "uid"}),
          .node = TextAt(object, {"spec", "nodeName"}),
          .scheduler = TextAt(object, {"spec", "schedulerName"})};
  for (const json& owner : At(object, {"metadata", "ownerReferences"}))
    if (IsTrueAt(owner, {"controller"})) {
      const std::string kind = TextAt(owner, {"kind"});
      if (kind == GangJobs().name) pod.job_uid = TextAt(owner, {"uid"});
      pod.of_node = kind == "DaemonSet" || kind == "Node";
    }
  pod.checkpoint_asked =
      ParseTime(TextAt(object, {"metadata", "annotations", kCheckpointRequestAnnotation}));
  pod.attempt = LabelNumber(object, kAttemptLabel);
  pod.rank = LabelNumber(object, kRankLabel);
  pod.request = PodRequest(At(object, {"spec"}));
  // When it must be gone: its grace period after it was told to stop.
  if (const auto gone_at = ParseTime(TextAt(object, {"metadata", "deletionTimestamp"}))) {
    pod.deleting = true;
    pod.told_at = *gone_at - NumberAt(object, {"metadata", "deletionGracePeriodSeconds"}) * kSecond;
  }
  const std::string phase = TextAt(object, {"status", "phase"});
  ReadContainers(At(object, {"status", "containerStatuses"}), pod,
                 At(object, {"spec", "containers"}).size());
  if (phase == "Succeeded" || phase == "Failed") {
    pod.ended = true;
    // Only a kubelet that ends a pod itself gives a reason: "OutOfcpu", "Evicted", "NodeShutdown".
    const std::string by_node = TextAt(object, {"status", "reason"});
    pod.refused = phase == "Failed" && !by_node.empty() && by_node != "DeadlineExceeded";
    if (phase == "Failed" && (pod.exit_code == 0 || pod.refused)) {
      if (pod.exit_code == 0) pod.exit_code = kKilled;
      pod.reason = by_node.empty() ? "Failed" : by_node;
    }
  }
  // A server grants no time to a pod that it knows to have ended. It does so, too, when a kubelet
  // confirms that a pod that was told to stop has ended, but that one ended later.
  const bool is_granted_none =
      NumberAt(object, {"metadata", "deletionGracePeriodSeconds"}, -1) == 0 && pod.told_at &&
      pod.finished && *pod.finished <= *pod.told_at;
  pod.ended_by_itself = pod.ended && (!pod.deleting || is_granted_none);
  pod.running = phase == "Running" && !pod.ended && pod.waiting.empty();
  return pod;
}

}  // namespace renzan::cluster::kubernetes
