#include "renzan/cluster/local/controller/artifact_collector.h"

#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/job_policy.h"

namespace renzan::cluster::local {

void ArtifactCollector::Start(const JobRecord& record, const CollectionRecord& outcome,
                              const std::string& from) {
  Collection& collection =
      collections_[record.id] = {.record = record, .outcome = outcome, .from = from};
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
  for (const CollectionRecord& outcome : store_.Collections()) {
    if (outcome.job != record.id) continue;
    try {
      const spec::JobSpec spec = spec::ReadJobSpec(record.spec, fmt::format("job {}", record.id));
      Start(record, outcome, ArtifactsPathOf(spec));
    } catch (const Error& error) {
      collections_[record.id] = {
          .record = record,
          .outcome = outcome,
          .problem = fmt::format("this version cannot read its specification: {}", error.what())};
    }
  }
}

void ArtifactCollector::Advance() {
  std::erase_if(killed_, [&](pid_t child) { return agent_.Reap(child).has_value(); });
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
  if (const std::optional<int> status = agent_.Reap(collection.child)) {
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
  record.state = collection.outcome.becomes;
  record.ended = collection.outcome.ended;
  std::string text = collection.outcome.text;
  if (!collection.problem->empty()) {
    text +=
        fmt::format("; not all of its artifacts could be collected{}{} ({})",
                    collection.from.empty() ? "" : " from ", collection.from, *collection.problem);
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
