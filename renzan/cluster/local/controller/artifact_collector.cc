#include "renzan/cluster/local/controller/artifact_collector.h"

#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {

void ArtifactCollector::Start(const JobRecord& record, const CollectionRecord& then,
                              const std::string& from) {
  Collection& collection = collections_[record.id] = {.record = record, .then = then, .from = from};
  try {
    collection.child = agent_.StartCopying(from, directories_.Of(record.id) + "/artifacts",
                                           record.uid, record.gid);
    collection.deadline = NowMs(clock_) + timeout_ms_;
    watched_[record.id] = collection.child;
  } catch (const Error& error) {
    collection.problem = error.what();
  }
}

void ArtifactCollector::Recover(const JobRecord& record) {
  for (const CollectionRecord& then : store_.Collections())
    if (then.job == record.id)
      Start(record, then,
            ArtifactsPathOf(spec::ReadJobSpec(record.spec, fmt::format("job {}", record.id))));
}

void ArtifactCollector::Advance() {
  std::erase_if(killed_, [&](pid_t child) { return agent_.Copied(child).has_value(); });
  for (auto at = collections_.begin(); at != collections_.end();) {
    CheckChild(at->second);
    if (at->second.problem) {
      CommitEnd(at->second);
      at = collections_.erase(at);
    } else {
      ++at;
    }
  }
}

void ArtifactCollector::CheckChild(Collection& collection) {
  if (collection.problem) return;  // committing its end has failed before
  if (const std::optional<int> status = agent_.Copied(collection.child)) {
    collection.problem = *status == 0 ? "" : fmt::format("cp ended with {}", *status);
  } else if (NowMs(clock_) >= collection.deadline) {
    agent_.StopCopying(collection.child);
    killed_.push_back(collection.child);
    collection.problem = fmt::format("copying took longer than {} s (artifacts_timeout)",
                                     static_cast<double>(timeout_ms_) / 1000);
  } else {
    return;
  }
  collection.child = 0;
  watched_.erase(collection.record.id);
}

void ArtifactCollector::CommitEnd(const Collection& collection) {
  JobRecord record = collection.record;
  record.state = collection.then.becomes;
  record.ended = collection.then.ended;
  std::string text = collection.then.text;
  if (!collection.problem->empty()) {
    text += fmt::format("; not all of its artifacts could be collected from {} ({})",
                        collection.from, *collection.problem);
    LogWarning("job {}: {}", record.id, text);
  }
  log_.Commit(record, std::nullopt, NameOf(record.state), text, NowMs(clock_));
}

void ArtifactCollector::Cancel(JobId job) {
  const Collection& collection = collections_.at(job);
  if (collection.child != 0) agent_.StopCopying(collection.child);
}

const JobRecord* ArtifactCollector::Find(JobId job) const {
  const auto at = collections_.find(job);
  return at == collections_.end() ? nullptr : &at->second.record;
}

std::vector<const JobRecord*> ArtifactCollector::Jobs() const {
  std::vector<const JobRecord*> jobs;
  for (const auto& [id, collection] : collections_) jobs.push_back(&collection.record);
  return jobs;
}

TimeMs ArtifactCollector::NextDeadline() const {
  TimeMs next = kNever;
  for (const auto& [id, collection] : collections_) next = std::min(next, collection.deadline);
  return next;
}

void ArtifactCollector::ClockWentBack(TimeMs now) {
  for (auto& [id, collection] : collections_)
    collection.deadline = std::min(collection.deadline, now + timeout_ms_);
}

}  // namespace renzan::cluster::local
