#include "renzan/cluster/kubernetes/controller/queue_keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/controller/queue_status.h"
#include "renzan/cluster/kubernetes/objects/conditions.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr TimeMs kBetweenFlushesMs = 5 * kSecond;

constexpr const char* kNobodyChecks =
    "only the namespaces of spec.members may use the queue: who submits a job is known to the "
    "admission webhook alone, which is not installed (deploy/kubernetes/admission)";

}  // namespace

void QueueKeeper::Take(const Json& spec, Known& known) {
  const std::string text = spec.is_null() ? "{}" : spec.dump();
  if (text == known.accepted) return;
  known.spec = QueueSpecFrom(spec);
  known.accepted = text;
}

void QueueKeeper::Put(std::shared_ptr<const Json> object) {
  const std::string name = TextAt(*object, {"metadata", "name"});
  Known& known = known_[name];
  if (!known.status.Put(object)) return;
  changed_ = true;
  flush_at_ = 0;
  try {
    // Written by an earlier leader, which knew what was in force then.
    const std::string held = TextAt(*object, {"status", "holds"});
    if (known.accepted.empty() && !held.empty()) Take(Json::parse(held), known);
  } catch (const std::exception& error) {
    LogWarning("the status of queue {} says what held before it, but {}", name, error.what());
  }
  const Json& spec = At(*object, {"spec"});
  try {
    Take(spec, known);
    known.wrong.clear();
  } catch (const Error& error) {
    known.wrong = error.what();
    LogWarning("queue {}: {}", name, known.wrong);
    if (known.accepted.empty()) known.spec = WithoutGuarantee(spec);
  }
}

void QueueKeeper::Remove(const std::string& name) {
  known_.erase(name);
  changed_ = true;
  flush_at_ = 0;  // the other queues' statuses say whether their guarantees exist
}

std::map<std::string, QueueSpec> QueueKeeper::holding() const {
  std::map<std::string, QueueSpec> specs;
  for (const auto& [name, known] : known_) specs.emplace(name, known.spec);
  return specs;
}

void QueueKeeper::CountUse(TimeMs now, Snapshot& snapshot) {
  for (const auto& [name, known] : known_)
    if (known.spec.fair_share) use_.Recover(name, known.status.status());
  use_.Count(now, snapshot);
}

spec::Submitter::Checked QueueKeeper::WasSubmitterChecked(const GangJob& job) const {
  const auto queue = known_.find(job.spec.queue);
  if (!serves_admission_ || queue == known_.end()) return spec::Submitter::Checked::kNo;
  return kubernetes::WasSubmitterChecked(queue->second.status.status(), job.entered());
}

bool QueueKeeper::Flush(const Snapshot& snapshot, Requests& requests, TimeMs now) {
  if (known_.empty() || now < flush_at_) return true;
  flush_at_ = now + kBetweenFlushesMs;
  const std::map<std::string, QueueStatus> of_queues = StatusesOfQueues(snapshot, faults_);
  std::vector<std::pair<KeptStatus*, Json>> statuses;
  for (auto& [name, known] : known_) {
    const auto at = of_queues.find(name);
    if (at == of_queues.end()) continue;
    Json status = *at->second.use;
    const Condition& guaranteed = at->second.guaranteed;
    const int64_t generation = NumberAt(known.status.object(), {"metadata", "generation"});
    const bool accepted = known.wrong.empty();
    const auto object_of = [&](const Condition& condition, TimeMs since = 0) {
      return ConditionObject(condition, generation, known.status.status(), std::max(now, since));
    };
    status["observedGeneration"] = generation;
    status["conditions"] = {
        object_of({"Accepted", accepted, accepted ? "Accepted" : "Invalid", known.wrong}),
        object_of(guaranteed)};
    std::string message = !accepted ? known.wrong : guaranteed.value ? "" : guaranteed.message;
    if (const std::optional<Condition>& parent = at->second.has_parent) {
      status["conditions"].push_back(object_of(*parent));
      if (accepted && !parent->value) message = parent->message;
    }
    if (NeedsSubmitters(known.spec.rights)) {
      const Condition checked = {kMembersChecked, serves_admission_,
                                 serves_admission_ ? "Webhook" : "NoWebhook",
                                 serves_admission_ ? "" : kNobodyChecks};
      // Jobs that are older than the Queue are held even if this clock is slow: the server's is
      // not.
      const auto made = ParseTime(TextAt(known.status.object(), {"metadata", "creationTimestamp"}));
      status["conditions"].push_back(object_of(checked, made.value_or(0)));
      // Why jobs are held follows from that.
      changed_ |= MembersCheckedSince(status) != MembersCheckedSince(known.status.status());
      if (message.empty() && !serves_admission_) message = kNobodyChecks;
    }
    if (!message.empty()) status["message"] = message;
    if (const auto lately = use_.StatusOf(name, now)) status["usedLately"] = *lately;
    // For the next leader, whose first view may already be the invalid one.
    if (!known.accepted.empty()) status["holds"] = known.accepted;
    statuses.emplace_back(&known.status, std::move(status));
  }
  const bool all = SetStatuses(Queues(), std::move(statuses), requests);
  if (!all) flush_at_ = now;
  return all;
}

TimeMs QueueKeeper::NextFlush() const { return known_.empty() ? kNever : flush_at_; }

}  // namespace renzan::cluster::kubernetes
