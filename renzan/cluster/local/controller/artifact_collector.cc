#include "renzan/cluster/local/controller/artifact_collector.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/last_line.h"

namespace renzan::cluster::local {

namespace fs = std::filesystem;

namespace {

// Names in a directory, sorted; none of one that cannot be read.
std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error); !error && at != fs::directory_iterator();
       at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The sources for `renzan upload`, such that run/... and so on appear below the target.
// `directory`: the job's.
std::string ListSources(const std::string& directory) {
  std::string sources;
  const auto add = [&](const std::string& name) {
    sources += fmt::format("{}/./{}\n", directory, name);
  };
  add("run");
  add("artifacts");
  for (const std::string& attempt : NamesIn(directory)) {
    if (!attempt.starts_with("attempt-")) continue;
    for (const std::string& file : NamesIn(directory + "/" + attempt))
      if (file.starts_with("worker-")) add(attempt + "/" + file);
  }
  return sources;
}

}  // namespace

std::string WhatIsCollected(const Outputs& outputs) {
  if (outputs.upload_to.empty()) return "its artifacts are being collected";
  return fmt::format("{}output is being uploaded to {}",
                     outputs.artifacts.empty() ? "its " : "its artifacts are being collected, its ",
                     outputs.upload_to);
}

void ArtifactCollector::Start(const JobRecord& record, const Outputs& outputs) {
  Collection& collection = collections_[record.id] = {
      .record = record, .outputs = outputs, .deadline = NowMs(clock_) + timeout_ms_};
  StartStep(collection);
}

void ArtifactCollector::StartStep(Collection& collection) {
  using Step = Collection::Step;
  const JobRecord& record = collection.record;
  for (; collection.step != Step::kDone;
       collection.step = collection.step == Step::kCopy ? Step::kUpload : Step::kDone) {
    const bool is_copy = collection.step == Step::kCopy;
    if ((is_copy ? collection.outputs.artifacts : collection.outputs.upload_to).empty()) continue;
    try {
      collection.child = is_copy ? agent_.StartCopying(collection.outputs.artifacts,
                                                       directories_.Of(record.id) + "/artifacts",
                                                       record.uid, record.gid, LogOf(collection))
                                 : StartUpload(collection);
      watched_[record.id] = collection.child;
      return;
    } catch (const Error& error) {
      AddProblem(collection, error.what());
    }
  }
}

// Of the child of its current step.
std::string ArtifactCollector::LogOf(const Collection& collection) const {
  return fmt::format("{}/{}.log", directories_.Of(collection.record.id),
                     collection.step == Collection::Step::kCopy ? "collect" : "upload");
}

pid_t ArtifactCollector::StartUpload(const Collection& collection) {
  const std::string directory = directories_.Of(collection.record.id);
  const std::string sources = directory + "/upload.list";
  WriteFileAtomically(sources, ListSources(directory));
  // The job's user reads it.
  if (::chmod(sources.c_str(), 0644) != 0) FailErrno(errno, "cannot change the mode of " + sources);
  // As a worker has it: the job's own variables take precedence.
  std::map<std::string, std::string> environment = collection.outputs.environment;
  environment.merge(inherited_.EnvironmentOf(collection.record.id));
  return agent_.StartUploading({.sources = sources,
                                .to = collection.outputs.upload_to,
                                .environment = std::move(environment),
                                .log = LogOf(collection),
                                .uid = collection.record.uid,
                                .gid = collection.record.gid});
}

// Records a problem of the current step.
void ArtifactCollector::AddProblem(Collection& collection, const std::string& why) const {
  const Outputs& outputs = collection.outputs;
  collection.problems +=
      collection.step == Collection::Step::kCopy
          ? fmt::format("; not all of its artifacts could be collected{}{} ({})",
                        outputs.artifacts.empty() ? "" : " from ", outputs.artifacts, why)
          : fmt::format("; not all of its output could be uploaded to {} ({})", outputs.upload_to,
                        why);
}

void ArtifactCollector::Recover(const JobRecord& record) {
  try {
    Start(record, OutputsOf(spec::ReadJobSpec(record.spec, fmt::format("job {}", record.id))));
  } catch (const Error& error) {
    Collection& collection = collections_[record.id] = {.record = record};
    AddProblem(collection,
               fmt::format("this version cannot read its specification: {}", error.what()));
    collection.step = Collection::Step::kDone;
  }
}

void ArtifactCollector::Advance() {
  std::erase_if(killed_, [&](pid_t child) { return agent_.Reap(child).has_value(); });
  for (auto at = collections_.begin(); at != collections_.end();) {
    CheckChild(at->second);
    if (at->second.step == Collection::Step::kDone) {
      CommitEnd(at->second);
      at = collections_.erase(at);
    } else {
      ++at;
    }
  }
}

void ArtifactCollector::CheckChild(Collection& collection) {
  using Step = Collection::Step;
  if (collection.step == Step::kDone) return;  // committing its end has failed before
  bool goes_on = !collection.cancelled;
  if (const std::optional<int> status = agent_.Reap(collection.child)) {
    const bool is_copy = collection.step == Step::kCopy;
    const std::string reason = *status < 0 ? "" : LastLineOf(LogOf(collection));
    if (*status == 0 && is_copy) ::unlink(LogOf(collection).c_str());  // it is empty
    if (*status != 0 && is_copy && IsMissing(collection.outputs.artifacts))
      AddProblem(collection, "it does not exist");
    else if (*status != 0)
      AddProblem(collection, fmt::format("{} ended with {}{}{}", is_copy ? "cp" : "renzan upload",
                                         *status, reason.empty() ? "" : ": ", reason));
  } else if (NowMs(clock_) >= collection.deadline) {
    agent_.StopCopying(collection.child);
    killed_.push_back(collection.child);
    AddProblem(collection, fmt::format("copying took longer than {} s (artifacts_timeout)",
                                       static_cast<double>(timeout_ms_) / 1000));
    goes_on = false;
  } else {
    return;
  }
  collection.child = 0;
  watched_.erase(collection.record.id);
  collection.step = collection.step == Step::kCopy && goes_on ? Step::kUpload : Step::kDone;
  StartStep(collection);
}

void ArtifactCollector::CommitEnd(const Collection& collection) {
  JobRecord record = collection.record;
  const local::Collection outcome = *std::exchange(record.collection, {});
  record.state = outcome.becomes;
  record.ended = outcome.ended;
  // For who waits for the job: it may be done all the same.
  record.message += collection.problems;
  const std::string text = outcome.text + collection.problems;
  if (!collection.problems.empty()) LogWarning("job {}: {}", record.id, text);
  log_.Commit(record, std::nullopt, NameOf(record.state), text, NowMs(clock_));
}

void ArtifactCollector::Cancel(JobId job) {
  Collection& collection = collections_.at(job);
  collection.cancelled = true;
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
