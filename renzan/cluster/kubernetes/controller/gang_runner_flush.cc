#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/controller/gang_runner.h"
#include "renzan/cluster/kubernetes/objects/dropped_field.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/kubernetes/objects/worker_pod.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

// One word, as conditions require it.
const char* ReasonOf(RecordState state) {
  switch (state) {
    case RecordState::kPending:
      return "Waiting";
    case RecordState::kRunning:
      return "Started";
    case RecordState::kStopping:
      return "Stopping";
    case RecordState::kResizing:
      return "Resizing";
    case RecordState::kCollecting:
    case RecordState::kDone:
      return "Done";
    case RecordState::kFailed:
      return "Failed";
    case RecordState::kCancelled:
      return "Cancelled";
    case RecordState::kTimeout:
      return "Timeout";
  }
  return "Unknown";
}

// Whether the server's copy of the job has a placement.
bool HasPlacement(const GangJob& job) { return !At(*job.object, {"status", "placement"}).empty(); }

// Others may write to the metadata of a job all the time.
constexpr int kMostConflicts = 5;

// Replaces the status. Fails with a conflict if it is no longer `known`, or if the user's
// specification, on which it is based, has changed.
Json ReplaceStatus(Api& api, Json object, const Json& known) {
  const std::string ns = object["metadata"]["namespace"], name = object["metadata"]["name"];
  for (int conflicts = 0;; ++conflicts) {
    try {
      return api.Replace(GangJobs(), ns, object, "status");
    } catch (const ApiError& error) {
      if (!error.is_conflict() || conflicts == kMostConflicts) throw;
      const Json there = api.Get(GangJobs(), ns, name);
      if (there["metadata"]["uid"] != object["metadata"]["uid"] ||
          there["metadata"]["generation"] != object["metadata"]["generation"] ||
          At(there, {"status"}) != known)
        throw;
      object["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"];
    }
  }
}

}  // namespace

bool GangRunner::Flush() {
  const std::set<JobId> gangs = NextToStart();
  bool all = WriteStates(gangs);
  all &= StartGangs(gangs);
  all &= DeletePods();
  AskForCheckpoints();
  WriteEvents();
  return all;
}

std::set<JobId> GangRunner::NextToStart() {
  std::set<JobId> gangs;
  size_t workers = 0;
  for (const JobId id : std::set(to_start_)) {
    LiveGang& live = live_.at(id);
    if (snapshot_.Find(id)->state == JobState::kRunning && !live.edited) {
      // A gang that moves gives room back: a new leader must not first learn who got it.
      if (!HasPlacement(live.object) && !gangs.empty() && workers + live.workers.size() > at_once_)
        continue;
      gangs.insert(id);
      workers += live.workers.size();
      continue;
    }
    // It was stopped, lost its node, or is to have other pods, before anything was done.
    to_start_.erase(id);
    std::erase_if(to_tell_, [&](const Event& event) { return event.job == id; });
    if (!live.ended_by) {
      live.ended_by = EndedBy::kNodeFailed;
      live.end_message = "it was stopped before its pods were created";
    }
    Check(id);
  }
  return gangs;
}

std::vector<JobId> GangRunner::NextToWrite(const std::set<JobId>& gangs) {
  std::erase_if(to_write_, [&](JobId id) { return !live_.contains(id) || live_.at(id).deleted; });
  std::vector<JobId> next, waiting;
  for (const JobId id : to_write_) {
    const GangJob& job = live_.at(id).object;
    if (to_start_.contains(id)) {
      if (gangs.contains(id)) next.push_back(id);
    } else if (job.status.state == RecordState::kPending && !HasPlacement(job)) {
      waiting.push_back(id);
    } else {
      next.push_back(id);
    }
  }
  if (waiting.size() > at_once_) waiting.resize(at_once_);
  next.insert(next.end(), waiting.begin(), waiting.end());
  for (const JobId id : next) to_write_.erase(id);
  return next;
}

bool GangRunner::WriteStates(const std::set<JobId>& gangs) {
  struct Write : Task {
    JobId id = 0;
    Json object;
    std::shared_ptr<const Json> before;
    std::string dropped = {};
  };
  std::vector<Write> writes;
  for (const JobId id : NextToWrite(gangs)) {
    GangJob& object = live_.at(id).object;
    GangJobStatus& status = object.status;
    if (status.state != RecordState::kPending || status.reason.empty())
      status.reason = ReasonOf(status.state);
    status.observed_generation = object.generation;
    status.term = term_;
    status.writer = identity_;
    Json body = *object.object;
    body["metadata"]["resourceVersion"] = object.resource_version;
    body["status"] = StatusObject(object, body.value("status", Json::object()), Now());
    writes.push_back({{}, id, std::move(body), object.object});
  }
  failed_requests_ += RunAll(requests_, writes, [](Api& api, Write& write) {
    Json there = ReplaceStatus(api, write.object, At(*write.before, {"status"}));
    write.dropped = DroppedField(write.object["status"], At(there, {"status"}), "status");
    write.object = std::move(there);
  });
  bool all = true;
  std::set<JobId> ended;
  for (Write& write : writes) {
    if (!write.error) {
      if (!write.dropped.empty() && dropped_.insert(write.dropped).second)
        LogError(
            "the definition of GangJobs is of another version: it drops {}, and a new leader may "
            "not know its jobs: apply deploy/kubernetes/crds of Renzan {}",
            write.dropped, RENZAN_VERSION);
      LiveGang& live = live_.at(write.id);
      // They are half of the object; if they are missing, the server keeps its own.
      write.object["metadata"].erase("managedFields");
      live.object.object = std::make_shared<const Json>(std::move(write.object));
      live.object.resource_version = (*live.object.object)["metadata"]["resourceVersion"];
      live.own_versions.insert(live.object.resource_version);
      if (HasEnded(live.object.status.state)) ended.insert(write.id);
      continue;
    }
    all = false;
    LogWarning("{}", write.error->what());
    to_reload_.insert(write.id);
    to_start_.erase(write.id);
  }
  Remove(ended);
  return all;
}

// --- Gangs that start. Each step is for those that have not failed in an earlier one.

bool GangRunner::StartGangs(std::set<JobId> gangs) {
  std::erase_if(gangs, [&](JobId id) { return !to_start_.contains(id); });
  const std::set<JobId> all_of_them = gangs;
  // Services come after the pods that they select, so that Kubernetes writes their endpoints less
  // often, and before bindings, by which a new leader recognizes a gang that was created whole.
  for (const auto step : {&GangRunner::FindClaims, &GangRunner::CreatePods,
                          &GangRunner::CreateServices, &GangRunner::BindPods})
    for (const JobId failed : (this->*step)(gangs)) gangs.erase(failed);
  bool all = true;
  for (const JobId id : all_of_them) {
    to_start_.erase(id);
    live_.at(id).created = gangs.contains(id);
    if (gangs.contains(id)) continue;
    all = false;
    Check(id);
  }
  return all;
}

// A gang that mounts a missing claim would hold its room until its startTimeout, and only its pods'
// events would say why.
std::set<JobId> GangRunner::FindClaims(const std::set<JobId>& gangs) {
  struct Find : Task {
    std::vector<JobId> jobs;
    std::string ns, claim;
  };
  std::map<std::pair<std::string, std::string>, std::vector<JobId>> claims;
  for (const JobId id : gangs) {
    const GangJob& job = live_.at(id).object;
    for (const std::string& claim : ClaimsOf(job)) claims[{job.ns, claim}].push_back(id);
  }
  std::vector<Find> finds;
  for (auto& [name, jobs] : claims) finds.push_back({{}, std::move(jobs), name.first, name.second});
  failed_requests_ += RunAll(requests_, finds, [](Api& api, Find& find) {
    try {
      api.Get(PersistentVolumeClaims(), find.ns, find.claim);
    } catch (const ApiError& error) {
      if (!error.is_not_found()) return;  // if it cannot be read, the kubelet will report it
      throw ApiError(error.http_status(), error.reason(),
                     fmt::format("there is no PersistentVolumeClaim {} in the namespace {}: create "
                                 "it, or correct the volumes of the job's template",
                                 find.claim, find.ns),
                     /*maybe_executed=*/false);
    }
  });
  std::set<JobId> failed;
  for (const Find& find : finds)
    if (find.error)
      for (const JobId id : find.jobs) CannotStart(live_.at(id), *find.error, failed);
  return failed;
}

std::set<JobId> GangRunner::CreateServices(const std::set<JobId>& gangs) {
  struct Create : Task {
    JobId id = 0;
    Json object;
    std::string owner;
  };
  std::vector<Create> creates;
  for (const JobId id : gangs) {
    const LiveGang& live = live_.at(id);
    if (!live.has_service && NeedsService(live.object, static_cast<int>(live.workers.size())))
      creates.push_back({{}, id, WorkerService(live.object), live.object.uid});
  }
  failed_requests_ += RunAll(requests_, creates, [](Api& api, Create& create) {
    const std::string ns = create.object["metadata"]["namespace"];
    try {
      api.Create(Services(), ns, create.object);
    } catch (const ApiError& error) {
      if (!error.is_already_exists()) throw;
      // The Service of an earlier attempt; or of an earlier job of that name, and about to be
      // deleted with it.
      const std::string name = create.object["metadata"]["name"];
      const Json there = api.Get(Services(), ns, name);
      for (const Json& owner : At(there, {"metadata", "ownerReferences"}))
        if (TextAt(owner, {"uid"}) == create.owner) return;
      throw ApiError(error.http_status(), error.reason(),
                     fmt::format("the Service {} in the namespace {} is not this job's: delete it, "
                                 "unless it goes with an earlier job of that name, or give the job "
                                 "another name",
                                 name, ns),
                     /*maybe_executed=*/false);
    }
  });
  std::set<JobId> failed;
  for (const Create& create : creates) {
    LiveGang& live = live_.at(create.id);
    live.has_service = !create.error;
    if (create.error) CannotStart(live, *create.error, failed);
  }
  return failed;
}

std::set<JobId> GangRunner::CreatePods(const std::set<JobId>& gangs) {
  struct Create : Task {
    JobId id = 0;
    size_t rank = 0;
    Json object;
  };
  std::vector<Create> creates;
  for (const JobId id : gangs) {
    const LiveGang& live = live_.at(id);
    WorkerPlace place{.attempt = live.object.status.attempts - 1,
                      .world_size = static_cast<int>(live.workers.size()),
                      .master_node = inventory_.AddressOf(live.workers[0].node)};
    for (size_t rank = 0; rank < live.workers.size(); ++rank) {
      place.rank = static_cast<int>(rank);
      creates.push_back({{}, id, rank, WorkerPod(live.object, place)});
    }
  }
  failed_requests_ += RunAll(requests_, creates, [](Api& api, Create& create) {
    const std::string ns = create.object["metadata"]["namespace"];
    create.object = api.Create(Pods(), ns, create.object);
  });
  std::set<JobId> failed;
  for (const Create& create : creates) {
    LiveGang& live = live_.at(create.id);
    if (create.error) {
      CannotStart(live, *create.error, failed);
      continue;
    }
    const Pod& pod = live.workers[create.rank].pod.emplace(PodFrom(create.object));
    pods_.PutAnswer(pod);
  }
  return failed;
}

std::set<JobId> GangRunner::BindPods(const std::set<JobId>& gangs) {
  struct Binding : Task {
    JobId id = 0;
    Worker* worker = nullptr;
  };
  std::vector<Binding> bindings;
  for (const JobId id : gangs)
    for (Worker& worker : live_.at(id).workers) bindings.push_back({{}, id, &worker});
  failed_requests_ += RunAll(requests_, bindings, [](Api& api, Binding& binding) {
    const Worker& worker = *binding.worker;
    const Pod& pod = *worker.pod;
    try {
      api.Bind(pod.ns, pod.name, pod.uid, worker.node);
    } catch (const ApiError& error) {
      // Perhaps only the answer was lost.
      if (!error.maybe_executed()) throw;
      const Json there = api.Get(Pods(), pod.ns, pod.name);
      if (TextAt(there, {"metadata", "uid"}) != pod.uid ||
          TextAt(there, {"spec", "nodeName"}) != worker.node)
        throw;
    }
  });
  std::set<JobId> failed;
  for (const Binding& binding : bindings) {
    if (binding.error) {
      CannotStart(live_.at(binding.id), *binding.error, failed);
      continue;
    }
    binding.worker->bound = true;
    pods_.Bound(binding.worker->pod->uid, binding.worker->node);
  }
  return failed;
}

void GangRunner::CannotStart(LiveGang& live, const ApiError& error, std::set<JobId>& failed) {
  // One pod's error is enough: the others often fail for the same reason.
  if (!failed.insert(live.object.status.id).second) return;
  LogWarning("{}", error.what());
  live.end_message = error.what();
}

// --- Pods that exist.

bool GangRunner::DeletePods() {
  struct Delete : Task {
    Deletion what;
  };
  std::vector<Delete> deletes;
  for (Deletion& each : std::exchange(to_delete_, {})) {
    // Only after it was written that they are to stop.
    if (to_reload_.contains(each.job)) continue;
    if (to_write_.contains(each.job))
      to_delete_.push_back(std::move(each));
    else
      deletes.push_back({{}, std::move(each)});
  }
  failed_requests_ += RunAll(requests_, deletes, [](Api& api, Delete& each) {
    api.Delete(Pods(), each.what.ns, each.what.name, each.what.uid, each.what.grace_seconds);
  });
  bool all = true;
  for (Delete& each : deletes) {
    // A conflict means that the name now belongs to another pod: this one is gone.
    if (!each.error || each.error->is_conflict()) continue;
    all = false;
    LogWarning("{}", each.error->what());
    to_delete_.push_back(std::move(each.what));
  }
  return all;
}

// Failed requests are repeated when the next checkpoint is due.
void GangRunner::AskForCheckpoints() {
  struct Ask : Task {
    const Pod* pod = nullptr;
  };
  std::vector<Ask> asks;
  for (const JobId id : std::exchange(to_checkpoint_, {})) {
    const auto at = live_.find(id);
    if (at == live_.end()) continue;
    for (const Worker& worker : at->second.workers)
      if (worker.pod && !worker.ended()) asks.push_back({{}, &*worker.pod});
  }
  const std::string now = MicroTimeText(clock_.UnixSeconds());
  failed_requests_ += RunAll(requests_, asks, [&](Api& api, Ask& ask) {
    const Json patch = {
        {"metadata",
         {{"uid", ask.pod->uid}, {"annotations", {{kCheckpointRequestAnnotation, now}}}}}};
    api.MergePatch(Pods(), ask.pod->ns, ask.pod->name, patch);
  });
  for (const Ask& ask : asks)
    if (ask.error && !ask.error->is_not_found()) LogWarning("{}", ask.error->what());
}

// --- What users read in `kubectl describe`.

void GangRunner::Tell(const LiveGang& live, const std::string& reason, const std::string& message,
                      bool warning) {
  const GangJob& job = live.object;
  to_tell_.push_back({.job = job.status.id,
                      .ns = job.ns,
                      .name = job.name,
                      .uid = job.uid,
                      .reason = reason,
                      .message = message,
                      .warning = warning,
                      .at = Now()});
}

// Nothing depends on events: gangs go first. An event that cannot be written is dropped, and so are
// the oldest if there are more than can be written in a while.
void GangRunner::WriteEvents() {
  constexpr size_t kLongestMessage = 1024;  // the server's limit
  constexpr TimeMs kLatest = kMinute;
  if (const size_t most = 64 * at_once_; to_tell_.size() > most)
    to_tell_.erase(to_tell_.begin(), to_tell_.end() - static_cast<std::ptrdiff_t>(most));
  if (to_tell_.empty() || (HasMoreThanEvents() && Now() < to_tell_.front().at + kLatest)) return;
  struct Write : Task {
    Json object;
  };
  std::vector<Write> writes;
  for (Event& event : std::exchange(to_tell_, {})) {
    // A state that has not been written has not happened.
    if (to_reload_.contains(event.job)) continue;
    if (to_write_.contains(event.job) || writes.size() >= at_once_) {
      to_tell_.push_back(std::move(event));
      continue;
    }
    const std::string time = TimeText(event.at);
    const std::string unique = fmt::format("{:x}{:04x}", event.at, events_++ & 0xffff);
    writes.push_back({{},
                      {{"metadata", {{"namespace", event.ns}, {"name", event.name + "." + unique}}},
                       {"involvedObject",
                        {{"apiVersion", ApiVersion(GangJobs())},
                         {"kind", GangJobs().name},
                         {"namespace", event.ns},
                         {"name", event.name},
                         {"uid", event.uid}}},
                       {"reason", event.reason},
                       {"message", ShortText(event.message, kLongestMessage - 3)},
                       {"type", event.warning ? "Warning" : "Normal"},
                       {"source", {{"component", "renzan"}}},
                       {"firstTimestamp", time},
                       {"lastTimestamp", time},
                       {"count", 1}}});
  }
  failed_requests_ += RunAll(requests_, writes, [](Api& api, Write& write) {
    const std::string ns = write.object["metadata"]["namespace"];
    api.Create(Events(), ns, write.object);
  });
  for (const Write& write : writes)
    if (write.error) {
      LogWarning("{}", write.error->what());
      return;
    }
}

}  // namespace renzan::cluster::kubernetes
