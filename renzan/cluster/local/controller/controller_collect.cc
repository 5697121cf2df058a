// A job's artifacts are copied when its processes have ended and its nodes are others' again:
// neither a large directory nor a file system that hangs holds, or bills, a GPU. A daemon that is
// killed in between leaves the job as kCollecting; the next one begins to copy anew.

#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {

void Controller::Collect(const JobRecord& record, const CollectionRecord& then,
                         const std::string& from) {
  Collection& collection = collections_[record.id] = {.record = record, .then = then, .from = from};
  try {
    collection.child = agent_.StartCopying(from, directories_.Of(record.id) + "/artifacts",
                                           record.uid, record.gid);
    collection.give_up_at = Now() + options_.artifacts_timeout_ms;
    state_.watched[record.id] = collection.child;
  } catch (const Error& error) {
    collection.problem = error.what();
  }
}

void Controller::RecoverCollection(JobRecord record) {
  for (const CollectionRecord& then : store_.Collections())
    if (then.job == record.id)
      Collect(record, then,
              ArtifactsPathOf(spec::ReadJobSpec(record.spec, fmt::format("job {}", record.id))));
}

void Controller::AdvanceCollections() {
  std::erase_if(abandoned_, [&](pid_t child) { return agent_.Copied(child).has_value(); });
  for (auto at = collections_.begin(); at != collections_.end();) {
    Advance(at->second);
    if (at->second.problem) {
      FinishCollection(at->second);
      at = collections_.erase(at);
    } else {
      ++at;
    }
  }
}

void Controller::Advance(Collection& collection) {
  if (collection.problem) return;  // the disk was full when that was to be written down
  if (const std::optional<int> status = agent_.Copied(collection.child)) {
    collection.problem = *status == 0 ? "" : fmt::format("cp ended with {}", *status);
  } else if (Now() >= collection.give_up_at) {
    agent_.StopCopying(collection.child);
    abandoned_.push_back(collection.child);
    collection.problem = fmt::format("that took longer than {} s (artifacts_timeout)",
                                     static_cast<double>(options_.artifacts_timeout_ms) / 1000);
  } else {
    return;
  }
  collection.child = 0;
  state_.watched.erase(collection.record.id);
}

void Controller::FinishCollection(const Collection& collection) {
  JobRecord record = collection.record;
  record.state = collection.then.becomes;
  record.ended = collection.then.ended;
  std::string text = collection.then.text;
  if (!collection.problem->empty()) {
    text += fmt::format("; not all of its artifacts could be collected from {} ({})",
                        collection.from, *collection.problem);
    LogWarning("job {}: {}", record.id, text);
  }
  log_.Commit(record, std::nullopt, NameOf(record.state), text, Now());
}

TimeMs Controller::NextCollectionEvent() const {
  TimeMs next = kNever;
  for (const auto& [id, collection] : collections_) next = std::min(next, collection.give_up_at);
  return next;
}

}  // namespace renzan::cluster::local
