#include "renzan/cluster/kubernetes/admission/job_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using Keys = std::set<std::string>;

// The keys of the specification whose values differ.
Keys ChangedKeys(const Json& spec, const Json& before) {
  Keys changed;
  for (const Json* one : {&spec, &before})
    for (const auto& [key, value] : one->items())
      if (At(spec, {key}) != At(before, {key})) changed.insert(key);
  return changed;
}

std::string WhyNotEdited(const GangJob& job, const GangJob& before, const Keys& changed) {
  if (HasEnded(before.status.state) && changed != Keys{"cancelled"})
    return fmt::format(
        "gangjob {} has ended ({}) and is not run again: submit it under another name, or delete "
        "it first",
        before.path(), NameOf(before.status.state));
  if (before.cancelled && !job.cancelled)
    return fmt::format(
        "gangjob {} has been cancelled, and there is no way back: submit it under another name",
        before.path());
  return "";
}

// When the changes to a job that has workers apply, if not immediately.
std::vector<std::string> WhenEditsApply(const GangJob& job, const GangJob& before, Keys changed) {
  std::vector<std::string> warnings;
  for (const char* at_once :
       {"cancelled", "held", "retries", "retryBackoff", "startTimeout", "timeout"})
    changed.erase(at_once);
  const bool is_size = changed.erase("replicas") + changed.erase("minReplicas") > 0;
  const int workers = NumWorkers(before.status.placement);
  const SizeApplies when =
      is_size ? WhenSizeApplies(job.spec, workers, before.status.state == RecordState::kRunning,
                                before.spec.checkpoint.on_stop)
              : SizeApplies::kAtOnce;
  switch (when) {
    case SizeApplies::kAtOnce:
      break;
    case SizeApplies::kAfterAStop:
      warnings.push_back(fmt::format(
          "the job has {}: it saves its work, stops, and starts again with the other size",
          Counted(workers, "worker")));
      break;
    case SizeApplies::kNextTime:
      changed.insert("replicas");
  }
  if (!changed.empty())
    warnings.push_back(fmt::format("the job is {}: the changes ({}) apply when it next starts",
                                   NameOf(before.status.state), fmt::join(changed, ", ")));
  return warnings;
}

bool HasWorkers(RecordState state) {
  return state == RecordState::kRunning || state == RecordState::kStopping ||
         state == RecordState::kResizing;
}

}  // namespace

JobVerdict CheckJob(const GangJob& job, const GangJob* before, const Requester& requester,
                    ClusterView& cluster, TimeMs now) {
  JobVerdict verdict;
  Keys changed;
  if (before != nullptr) {
    changed = ChangedKeys(At(*job.object, {"spec"}), At(*before->object, {"spec"}));
    // Only metadata such as labels or finalizers has changed: errors elsewhere must not prevent
    // that.
    if (changed.empty() || job.deleting) return verdict;
    verdict.refusal = WhyNotEdited(job, *before, changed);
    if (!verdict.refusal.empty()) return verdict;
  }
  if (!job.invalid.empty()) {
    // An error that existed before may remain: the job can still be cancelled.
    (before != nullptr && before->invalid == job.invalid) ? verdict.warnings.push_back(job.invalid)
                                                          : void(verdict.refusal = job.invalid);
    return verdict;
  }
  // Who edits a job that stays in its queue has not submitted it.
  const bool stays = before != nullptr && before->spec.queue == job.spec.queue;
  if (!stays && !cluster.KnowsRights()) {
    verdict.refusal =
        "this replica of the controller has just started and has not read the Queues yet, which "
        "say who may use them: try again in a few seconds";
    verdict.try_again = true;
    return verdict;
  }
  const Requester* const submitter = stays ? nullptr : &requester;
  verdict.refusal = cluster.WhyItIsForbidden(job, submitter);
  if (!verdict.refusal.empty()) {
    // What was wrong before may remain, but not become worse, or wrong in another way.
    if (!stays || verdict.refusal != cluster.WhyItIsForbidden(*before, submitter)) {
      verdict.forbidden = true;
      return verdict;
    }
    verdict.warnings.push_back(std::exchange(verdict.refusal, ""));
  }
  if (before != nullptr && HasWorkers(before->status.state))
    for (std::string& each : WhenEditsApply(job, *before, changed))
      verdict.warnings.push_back(std::move(each));
  if (const std::string why = cluster.WhyItCannotRun(job, now); !why.empty() && !job.cancelled)
    verdict.warnings.push_back(fmt::format("the job waits, as the cluster is now: {}", why));
  return verdict;
}

}  // namespace renzan::cluster::kubernetes
