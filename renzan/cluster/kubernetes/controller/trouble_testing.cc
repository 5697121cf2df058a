#include "renzan/cluster/kubernetes/controller/trouble_testing.h"

#include <fmt/format.h>

#include <iterator>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr const char* kUsers = "ads";

TroubleKinds KindsOf(uint64_t seed) {
  TroubleKinds kinds;
  uint32_t bits = Philox::Draw(seed, 0, 5)[0];
  for (bool* kind :
       {&kinds.lost_answers, &kinds.watches_expire, &kinds.conflict_storms, &kinds.server_ends,
        &kinds.wrong_clocks, &kinds.leaders_killed, &kinds.two_leaders, &kinds.machines,
        &kinds.pods_deleted, &kinds.edits, &kinds.names_reused, &kinds.kubelets_refuse}) {
    *kind = (bits & 1) != 0;
    bits >>= 1;
  }
  return kinds;
}

}  // namespace

std::string TroubleKinds::Text() const {
  std::string text;
  for (const auto& [is_on, name] : {std::pair{lost_answers, "lost answers"},
                                    {watches_expire, "watches expire"},
                                    {conflict_storms, "conflict storms"},
                                    {server_ends, "server ends"},
                                    {wrong_clocks, "wrong clocks"},
                                    {leaders_killed, "leaders killed"},
                                    {two_leaders, "two leaders"},
                                    {machines, "machines"},
                                    {pods_deleted, "pods deleted"},
                                    {edits, "edits"},
                                    {names_reused, "names reused"},
                                    {kubelets_refuse, "kubelets refuse"}})
    if (is_on) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text;
}

Trouble::Trouble(uint64_t seed) : kinds(KindsOf(seed)), world(seed), seed_(seed) {
  nodes_ = 2 + static_cast<int>(Draw(3));
  for (int node = 0; node < nodes_; ++node) world.cluster.AddNode(fmt::format("n{}", node), 8);
  world.cluster.checks_uid_of_bindings = OneIn(2);
  world.cluster.ends_may_be_unseen = true;
  // Users ask for as much.
  world.cluster.Apply(ClusterPolicies(), kPolicyName, {{"limits", {{"maxPriority", 2}}}});
  StartLeader();
}

// --- Replicas.

void Trouble::StartLeader() {
  auto led = world.StartController();
  if (kinds.two_leaders && OneIn(2) && !at_work_.contains(led.get())) deposed_ = std::move(led);
  Replica& leader = *world.leader;
  leader.connection.meanwhile = [this, &leader] { Meanwhile(leader); };
  if (kinds.wrong_clocks) leader.clock.ahead_seconds = static_cast<double>(Draw(1200)) - 600;
}

bool Trouble::Work(Replica& replica, bool trouble) {
  if (ended_.contains(&replica)) return false;
  if (!at_work_.insert(&replica).second) return true;
  if (trouble && kinds.leaders_killed && OneIn(30))
    replica.connection.requests_left = static_cast<int>(Draw(20));
  try {
    replica.Work(trouble ? Draw(6) : SIZE_MAX);
  } catch (const Killed&) {
    ended_.insert(&replica);
  } catch (const Error& error) {
    // Another replica leads: this one would be restarted.
    if (error.code() != ErrorCode::kTempFail) world.wrong.push_back(error.what());
    ended_.insert(&replica);
  }
  at_work_.erase(&replica);
  return !ended_.contains(&replica);
}

void Trouble::Step(bool trouble) {
  world.clock.seconds += 0.2 + Draw(3000) / 1000.0;
  world.Play();
  if (deposed_ && !Work(*deposed_, trouble)) deposed_.reset();
  // It takes a while until it notices that it no longer leads.
  if (OneIn(20)) deposed_.reset();
  if (!Work(*world.leader, trouble) || (trouble && kinds.two_leaders && OneIn(60))) StartLeader();
  ended_.clear();
}

// What happens between two requests of a replica.
void Trouble::Meanwhile(const Replica& replica) {
  if (at_work_.size() > 1) return;
  if (kinds.conflict_storms && OneIn(3)) {
    const std::string job = SomeJob();
    if (!job.empty())
      world.cluster.MergePatch(
          GangJobs(), kUsers, job,
          {{"metadata", {{"annotations", {{"touched", std::to_string(++told_)}}}}}}, "");
  }
  if (OneIn(20)) {
    world.clock.seconds += Draw(500) / 1000.0;
    world.Play();
  }
  if (OneIn(40)) UsersAct();
  if (OneIn(80)) MachinesAct();
  if (deposed_ && OneIn(4)) Work(&replica == deposed_.get() ? *world.leader : *deposed_, true);
}

// --- Everybody else.

std::string Trouble::SomeJob() {
  std::vector<std::string> names;
  for (const Json* job : world.cluster.Objects(GangJobs()))
    names.push_back(TextAt(*job, {"metadata", "name"}));
  return names.empty() ? "" : names[Draw(static_cast<uint32_t>(names.size()))];
}

void Trouble::Submit(const std::string& name) {
  Json spec = JobSpec(1 + static_cast<int>(Draw(4)), 1 + static_cast<int>(Draw(4)), Draw(3) > 0);
  spec["priority"] = Draw(3);
  // A machine without power for a moment fails jobs, as far as anybody can tell.
  spec["retries"] = 100;
  spec["timeout"] = "1d";
  if (OneIn(4)) spec["minReplicas"] = 1;
  world.cluster.AddJob(kUsers, name, std::move(spec),
                       Program{.work_ms = (10 + Draw(200)) * kSecond,
                               .failures = OneIn(4) ? 1 : 0,
                               .ends_with_0_when_stopped = OneIn(2)});
  given_up_[name] = false;
}

void Trouble::UsersAct() {
  FakeCluster& cluster = world.cluster;
  if (OneIn(2) && given_up_.size() < 20) Submit(fmt::format("job-{}", given_up_.size()));
  const std::string job = SomeJob();
  if (job.empty()) return;
  if (OneIn(10)) {
    given_up_[job] = true;
    if (OneIn(2))
      cluster.DeleteJob(kUsers, job);
    else
      cluster.EditJob(kUsers, job, [](Json& spec) { spec["cancelled"] = true; });
  } else if (kinds.names_reused && OneIn(4)) {
    cluster.DeleteJob(kUsers, job);
    Submit(job);
  } else if (kinds.edits && OneIn(3)) {
    const auto request = [&](const char* annotation) {
      cluster.MergePatch(GangJobs(), kUsers, job,
                         {{"metadata", {{"annotations", {{annotation, std::to_string(++told_)}}}}}},
                         "");
    };
    switch (Draw(4)) {
      case 0:
        request(kRequestCheckpoint);
        break;
      case 1:
        request(kRequestPreempt);
        break;
      default:
        cluster.EditJob(kUsers, job, [&](Json& spec) {
          if (OneIn(2)) spec["replicas"] = 1 + Draw(4);
          if (OneIn(2)) spec["priority"] = Draw(3);
          if (OneIn(4)) spec["template"] = JobSpec(1, 1 + static_cast<int>(Draw(4)))["template"];
          if (spec.contains("minReplicas") && OneIn(2)) spec.erase("minReplicas");
        });
    }
  }
  const auto pods = cluster.Objects(Pods());
  if (kinds.pods_deleted && OneIn(6) && !pods.empty()) {
    const Json& pod = *pods[Draw(static_cast<uint32_t>(pods.size()))];
    cluster.Delete(Pods(), TextAt(pod, {"metadata", "namespace"}),
                   TextAt(pod, {"metadata", "name"}), "",
                   OneIn(4) ? std::optional<int64_t>(0) : std::nullopt);
  }
}

void Trouble::Mend(const std::string& node) {
  const auto at = broken_.find(node);
  if (at == broken_.end()) return;
  at->second();
  broken_.erase(at);
}

void Trouble::MachinesAct() {
  FakeCluster& cluster = world.cluster;
  const std::string node = SomeNode();
  if (kinds.kubelets_refuse && OneIn(2)) {
    const std::string name = fmt::format("other-{}", ++told_);
    cluster.Create(Pods(), "others",
                   {{"metadata", {{"name", name}}},
                    {"spec",
                     {{"nodeName", SomeNode()},
                      {"containers", JobSpec(1, 2)["template"]["spec"]["containers"]}}}});
    others_.insert(name);
  } else if (!others_.empty()) {
    cluster.Delete(Pods(), "others", *others_.begin(), "", std::nullopt);
    others_.erase(others_.begin());
  }
  if (!kinds.machines) return;
  if (broken_.contains(node)) {
    Mend(node);
    return;
  }
  const auto restore = [&cluster, node] { cluster.RestoreNode(node); };
  const auto taint = [&](const char* key) {
    cluster.SetNode(node, [&](Json& object) {
      object["spec"]["taints"] = {{{"key", key}, {"effect", "NoSchedule"}}};
    });
    return [&cluster, node] {
      cluster.SetNode(node, [](Json& object) { object["spec"].erase("taints"); });
    };
  };
  switch (Draw(6)) {
    case 0:
      cluster.KillNode(node);
      broken_[node] = restore;
      break;
    case 1:
      cluster.CutOffNode(node);
      broken_[node] = restore;
      break;
    case 2:
      cluster.KillNode(node);
      cluster.Delete(Nodes(), "", node, "", std::nullopt);
      broken_[node] = [&cluster, node] { cluster.AddNode(node, 8); };
      break;
    case 3:
      broken_[node] = taint("aws-node-termination-handler/spot-itn");
      break;
    case 4:
      broken_[node] = taint("karpenter.sh/disrupted");
      break;
    default: {
      // Drains the node as kubectl does.
      cluster.SetNode(node, [](Json& object) { object["spec"]["unschedulable"] = true; });
      broken_[node] = [&cluster, node] {
        cluster.SetNode(node, [](Json& object) { object["spec"]["unschedulable"] = false; });
      };
      std::vector<std::pair<std::string, std::string>> on_it;
      for (const Json* pod : cluster.Objects(Pods()))
        if (TextAt(*pod, {"spec", "nodeName"}) == node)
          on_it.emplace_back(TextAt(*pod, {"metadata", "namespace"}),
                             TextAt(*pod, {"metadata", "name"}));
      for (const auto& [ns, name] : on_it) cluster.Delete(Pods(), ns, name, "", std::nullopt);
    }
  }
}

void Trouble::NetworkActs() {
  if (kinds.watches_expire && OneIn(8)) world.cluster.Compact();
  if (kinds.server_ends && OneIn(world.network.is_down ? 10 : 60))
    world.network.is_down = !world.network.is_down;
  if (kinds.wrong_clocks && OneIn(40))
    for (Replica* replica : {world.leader.get(), deposed_.get()})
      if (replica != nullptr) replica->clock.ahead_seconds = static_cast<double>(Draw(1200)) - 600;
}

// --- The run.

void Trouble::Suffer(int turns) {
  if (kinds.lost_answers) world.network.no_answer = 0.05;
  if (kinds.kubelets_refuse) world.cluster.kubelet_refuses = 0.03;
  for (int turn = 0; turn < turns; ++turn) {
    if (OneIn(8)) UsersAct();
    if (OneIn(20)) MachinesAct();
    NetworkActs();
    Step(true);
  }
}

bool Trouble::Recover(int turns) {
  world.network = {};
  world.cluster.kubelet_refuses = 0;
  deposed_.reset();
  world.leader->connection.meanwhile = nullptr;
  world.leader->connection.requests_left.reset();
  world.leader->clock.ahead_seconds = 0;
  for (const std::string& pod : others_)
    world.cluster.Delete(Pods(), "others", pod, "", std::nullopt);
  while (!broken_.empty()) Mend(broken_.begin()->first);
  for (int turn = 0; turn < turns; ++turn) {
    Step(false);
    world.leader->connection.meanwhile = nullptr;
    world.leader->clock.ahead_seconds = 0;
    if (turn > 20 && world.leader->controller.live().empty()) return true;
  }
  return false;
}

std::vector<std::string> Trouble::Wrong() const {
  std::vector<std::string> wrong = world.wrong;
  for (const auto& [job, is_given_up] : given_up_) {
    const std::string phase = world.PhaseOf(job);
    const bool is_right =
        phase == "done" || (is_given_up && (phase == "gone" || phase == "cancelled"));
    if (!is_right)
      wrong.push_back(fmt::format("{} is {}: {}", job, phase,
                                  phase == "gone" ? "" : world.StatusOf(job, "message")));
  }
  for (const Json* pod : world.cluster.Objects(Pods()))
    if (!PodFrom(*pod).job_uid.empty() && !PodFrom(*pod).ended)
      wrong.push_back("left over: pod " + TextAt(*pod, {"metadata", "name"}));
  // Two replicas that lead at the same time may choose the same room, and pods of others may take
  // it: kubelets decide. An old server may carry out a late binding for an earlier pod of the same
  // name.
  const bool may_be_refused =
      kinds.two_leaders || kinds.kubelets_refuse ||
      (kinds.names_reused && kinds.lost_answers && !world.cluster.checks_uid_of_bindings);
  if (world.cluster.refused > 0 && !may_be_refused)
    wrong.push_back(fmt::format("kubelets had no room for {} pods", world.cluster.refused));
  return wrong;
}

}  // namespace renzan::cluster::kubernetes
