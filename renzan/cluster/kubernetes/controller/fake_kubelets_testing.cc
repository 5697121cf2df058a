#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "renzan/cluster/kubernetes/controller/fake_cluster_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

int64_t WorldSize(const Json& pod) {
  for (const Json& container : At(pod, {"spec", "containers"}))
    for (const Json& variable : At(container, {"env"}))
      if (TextAt(variable, {"name"}) == "WORLD_SIZE")
        return std::stoll(TextAt(variable, {"value"}));
  return 1;
}

}  // namespace

// --- Machines.

void FakeCluster::AddNode(const std::string& name, int gpus, Json labels) {
  labels[kPoolLabel] = labels.value(kPoolLabel, "own");
  dead_nodes_.erase(name);
  cut_off_nodes_.erase(name);
  Store(
      "nodes", {"", name},
      {{"metadata", {{"name", name}, {"uid", fmt::format("node-{}", ++uids_)}, {"labels", labels}}},
       {"spec", Json::object()},
       {"status",
        {{"allocatable",
          {{"cpu", "64"},
           {"memory", "256Gi"},
           {"pods", "110"},
           {kGpuResource, std::to_string(gpus)}}},
         {"addresses", {{{"type", "InternalIP"}, {"address", "address-of-" + name}}}},
         {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  ReportEnded(name);
}

void FakeCluster::SetNode(const std::string& name, const std::function<void(Json&)>& edit) {
  Json node = Find(Nodes(), "", name);
  edit(node);
  Store("nodes", {"", name}, std::move(node));
}

void FakeCluster::KillNode(const std::string& name) {
  CutOffNode(name);
  dead_nodes_.insert(name);
  for (auto& [uid, container] : containers_)
    if (container.pod.node == name && container.state == Container::kRunning)
      container.state = Container::kEnded;
}

void FakeCluster::CutOffNode(const std::string& name) {
  cut_off_nodes_.insert(name);
  SetNode(name, [](Json& node) { node["status"]["conditions"][0]["status"] = "Unknown"; });
}

void FakeCluster::RestoreNode(const std::string& name) {
  dead_nodes_.erase(name);
  cut_off_nodes_.erase(name);
  SetNode(name, [](Json& node) { node["status"]["conditions"][0]["status"] = "True"; });
  ReportEnded(name);
}

// A kubelet that is back reports what happened to its containers.
void FakeCluster::ReportEnded(const std::string& name) {
  std::vector<std::string> ended;
  for (const auto& [uid, container] : containers_)
    if (container.pod.node == name && container.state == Container::kEnded && !container.pod.ended)
      ended.push_back(uid);
  for (const std::string& uid : ended) EndContainer(containers_.at(uid), 137);
}

// --- Pods.

// Updates a pod from the API server, as its kubelet sees it.
void FakeCluster::Follow(const Key&, const Json& object) {
  Pod pod = PodFrom(object);
  if (pod.node.empty()) return;
  const auto [at, is_new] = containers_.try_emplace(pod.uid);
  Container& container = at->second;
  if (is_new) {
    container.world_size = WorldSize(object);
    container.cannot_pull = At(object, {"spec", "containers"})[0].value("image", "") == kNoImage;
  }
  container.pod = std::move(pod);
  if (container.pod.ended) container.state = Container::kEnded;
}

void FakeCluster::Forget(const std::string& uid) {
  const auto at = containers_.find(uid);
  if (at == containers_.end()) return;
  if (at->second.done) {
    bool said = false;
    for (const Json* job : Objects(GangJobs()))
      if (UidOf(*job) == at->second.pod.job_uid)
        said = !At(*job, {"status", "completionTime"}).is_null();
    if (!said) work_[at->second.pod.job_uid].unseen = true;
  }
  containers_.erase(at);
}

bool FakeCluster::IsReached(const Container& container) const {
  return !cut_off_nodes_.contains(container.pod.node);
}

bool FakeCluster::HasPower(const Container& container) const {
  return !dead_nodes_.contains(container.pod.node) && Exists(Nodes(), {"", container.pod.node});
}

void FakeCluster::EndContainer(Container& container, int exit_code) {
  container.state = Container::kEnded;
  const Key key{container.pod.ns, container.pod.name};
  Json pod = *objects_["pods"].at(key);
  pod["status"] = {
      {"phase", exit_code == 0 ? "Succeeded" : "Failed"},
      {"containerStatuses",
       {{{"state",
          {{"terminated",
            {{"exitCode", exit_code}, {"finishedAt", TimeText(clock_.UnixMs())}}}}}}}}};
  Store("pods", key, std::move(pod));
}

// Checks as a kubelet does before it admits a pod.
bool FakeCluster::HasRoom(const Container& container) const {
  Amounts used = container.pod.request;
  for (const auto& [uid, other] : containers_)
    if (other.pod.node == container.pod.node && other.state == Container::kRunning)
      used += other.pod.request;
  const Amounts offered =
      AmountsOf(At(Find(Nodes(), "", container.pod.node), {"status", "allocatable"}));
  return std::all_of(used.begin(), used.end(), [&](const auto& each) {
    const auto at = offered.find(each.first);
    return at != offered.end() && each.second <= at->second;
  });
}

void FakeCluster::PlayContainer(const std::string& uid, TimeMs now) {
  const auto at = containers_.find(uid);
  if (at == containers_.end()) return;
  Container& container = at->second;
  if (!HasPower(container) || !IsReached(container)) return;
  const Key key{container.pod.ns, container.pod.name};
  switch (container.state) {
    case Container::kNone: {
      if (container.pod.deleting) {
        Erase("pods", key);
        break;
      }
      if (container.next == 0) container.next = now + 1 + Draw(2000);
      if (now < container.next) break;
      if (container.cannot_pull) {
        if (!container.pod.waiting.empty()) break;
        Json pod = *objects_["pods"].at(key);
        pod["status"] = {
            {"phase", "Pending"},
            {"containerStatuses",
             {{{"state",
                {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}}}}}};
        Store("pods", key, std::move(pod));
        break;
      }
      const bool has_room = HasRoom(container);
      if (!has_room) ++refused;
      Json pod = *objects_["pods"].at(key);
      if (!has_room || Chance(kubelet_refuses)) {
        pod["status"] = {{"phase", "Failed"}, {"reason", "OutOfnvidia.com/gpu"}};
      } else {
        container.state = Container::kRunning;
        pod["status"] = {
            {"phase", "Running"},
            {"containerStatuses", {{{"state", {{"running", {{"startedAt", TimeText(now)}}}}}}}}};
      }
      Store("pods", key, std::move(pod));
      break;
    }
    case Container::kRunning: {
      if (!container.pod.deleting) break;
      const auto work = work_.find(container.pod.job_uid);
      if (!container.told) {
        container.told = true;
        container.next = now + Draw(5000);
      } else if (now >= container.next) {
        const bool saves = work != work_.end() && work->second.saves;
        const bool is_silent = work != work_.end() && work->second.program.ends_with_0_when_stopped;
        EndContainer(container, saves ? 75 : is_silent ? 0 : 143);
      }
      break;
    }
    case Container::kEnded:
      if (!container.pod.deleting) break;
      if (container.gone_at == kNever) container.gone_at = now + Draw(8000);
      if (now >= container.gone_at) Confirm(key);
      break;
  }
}

// A kubelet deletes a pod that has ended without granting it any time, from when it was told on.
void FakeCluster::Confirm(const Key& key) {
  Json pod = *objects_["pods"].at(key);
  Json& metadata = pod["metadata"];
  metadata["deletionTimestamp"] = TimeText(*PodFrom(pod).told_at);
  metadata["deletionGracePeriodSeconds"] = 0;
  objects_["pods"].at(key) = std::make_shared<const Json>(std::move(pod));
  Erase("pods", key);
}

// A gang works while all of its containers run.
void FakeCluster::PlayPrograms(TimeMs ran) {
  std::map<std::pair<std::string, int>, std::vector<Container*>> running;
  for (auto& [uid, container] : containers_)
    if (container.state == Container::kRunning && HasPower(container) &&
        work_.contains(container.pod.job_uid))
      running[{container.pod.job_uid, container.pod.attempt}].push_back(&container);
  std::set<std::string> at_work;
  for (const auto& [attempt, gang] : running) {
    Work& work = work_[attempt.first];
    if (static_cast<int64_t>(gang.size()) != gang[0]->world_size) continue;
    // They are cut off from each other.
    if (!std::all_of(gang.begin(), gang.end(), [&](Container* each) { return IsReached(*each); }))
      continue;
    // SIGTERM ends a program that does not save its work: an exit status of 0 would not mean that
    // it is done.
    if (!work.saves && std::any_of(gang.begin(), gang.end(),
                                   [](const Container* each) { return each->pod.deleting; }))
      continue;
    at_work.insert(attempt.first);
    work.left -= ran;
    const bool fails = work.failures > 0 && work.left < work.program.work_ms / 2;
    if (work.left > 0 && !fails) continue;
    if (fails) {
      --work.failures;
      work.left = work.program.work_ms;
      EndContainer(*gang[Draw(static_cast<uint32_t>(gang.size()))], 1);
      continue;
    }
    ++work.finished;
    for (Container* each : gang) {
      each->done = true;
      EndContainer(*each, 0);
    }
  }
  for (auto& [uid, work] : work_)
    if (!at_work.contains(uid) && !work.saves && work.left > 0) work.left = work.program.work_ms;
}

// --- The ledger.

void FakeCluster::CheckLedger(std::vector<std::string>& wrong) const {
  std::map<std::string, Amounts> used;
  std::map<std::string, std::set<int>> attempts;
  for (const auto& [uid, container] : containers_) {
    if (container.state != Container::kRunning || !HasPower(container) || !IsReached(container))
      continue;
    used[container.pod.node] += container.pod.request;
    if (!container.pod.job_uid.empty())
      attempts[container.pod.job_uid].insert(container.pod.attempt);
  }
  for (const auto& [node, amounts] : used) {
    const Amounts offered = AmountsOf(At(Find(Nodes(), "", node), {"status", "allocatable"}));
    for (const auto& [kind, amount] : amounts)
      if (const auto at = offered.find(kind); at == offered.end() || amount > at->second)
        wrong.push_back(fmt::format("node {} is over-allocated: {} of {}", node, amount, kind));
  }
  for (const auto& [uid, numbers] : attempts)
    if (numbers.size() > 1)
      wrong.push_back(fmt::format("{} attempts of {} run at the same time", numbers.size(), uid));
  for (const auto& [uid, work] : work_)
    if (work.finished > 1 && !(ends_may_be_unseen && work.unseen))
      wrong.push_back(fmt::format("{} has been done {} times", uid, work.finished));
  for (const Json* job : Objects(GangJobs()))
    if (TextAt(*job, {"status", "phase"}) == "done" && work_.at(UidOf(*job)).finished == 0)
      wrong.push_back(TextAt(*job, {"metadata", "name"}) + " is said to be done, and is not");
}

}  // namespace renzan::cluster::kubernetes
