#pragma once

// An API server in memory, with simulated kubelets, for tests of the controller: objects with
// versions and conflicts, watches that continue from a version or find it expired, a garbage
// collector. fake_connection_testing.h simulates failures between it and its clients.
//
// Keeps a ledger of its own: what ran where and for whom, whatever the controller believes.
//
// With RENZAN_TEST_TRACE in the environment it prints every change.
//
// fake_kubelets_testing.cc has the nodes and the ledger, fake_machines_testing.cc the machines that
// are bought.

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/cluster/kubernetes/controller/controller.h"

namespace renzan::cluster::kubernetes {

std::string UidOf(const Json& object);

// An image that no kubelet can pull.
inline constexpr const char* kNoImage = "missing";

// What a job's workers do together.
struct Program {
  TimeMs work_ms = 0;  // kept at a stop if it saves its work
  int failures = 0;    // its first attempts fail
  // The program does not know what SIGTERM means for a job: it exits with 0 though it is not done.
  bool ends_with_0_when_stopped = false;
};

inline const Kind& FakeMachines() {
  static const Kind kind{"example.com", "v1", "machinesets", "MachineSet"};
  return kind;
}

class FakeCluster : public Api {
 public:
  FakeCluster(uint64_t seed, const Clock& clock) : seed_(seed), clock_(clock) {}

  // As servers from 1.23 on do.
  bool checks_uid_of_bindings = false;
  // The probability that a kubelet refuses a pod although there is room.
  double kubelet_refuses = 0;
  // If the controller has not seen how a worker whose pod is gone ended, it runs the gang again.
  bool ends_may_be_unseen = false;
  // The owner of the machines allows no other number of them.
  bool refuses_scaling = false;
  // The only namespace whose objects the caller may see or touch; empty: no limit.
  std::string allowed_namespace;
  // Namespaces in which the controller has no right to create pods.
  std::set<std::string> closed_namespaces;
  // How often it has tried nevertheless.
  int forbidden = 0;
  // Pods that a kubelet has refused for lack of room.
  int refused = 0;

  // --- What a user, a cloud or kubectl does.
  void AddNode(const std::string& name, int gpus, Json labels = Json::object());
  void SetNode(const std::string& name, const std::function<void(Json&)>& edit);
  // The machine loses power: its containers end without a report.
  void KillNode(const std::string& name);
  // The node no longer reports, but keeps working.
  void CutOffNode(const std::string& name);
  void RestoreNode(const std::string& name);
  void AddJob(const std::string& ns, const std::string& name, Json spec, Program program);
  void AddJob(const std::string& ns, const std::string& name, Json spec, TimeMs work_ms,
              int failures = 0) {
    AddJob(ns, name, std::move(spec), Program{.work_ms = work_ms, .failures = failures});
  }
  void EditJob(const std::string& ns, const std::string& name,
               const std::function<void(Json& spec)>& edit);
  // Its pods and its Service are collected a while later.
  void DeleteJob(const std::string& ns, const std::string& name);
  // Adds an object whose replicas are machines: nodes of the pool that come a while after they are
  // wanted, and go when they are not. `any_goes`: not always the one that was chosen goes.
  void AddMachines(const std::string& pool, int gpus, TimeMs boot_ms, bool any_goes = false);
  int Replicas(const std::string& pool) const;
  // Removes the node as if it had never existed. Its pods go with it.
  void RemoveNode(const std::string& name);
  // Creates a NodePool or ClusterPolicy, or replaces its spec.
  void Apply(const Kind& kind, const std::string& name, Json spec);
  const Json* FindJob(const std::string& ns, const std::string& name) const;
  std::vector<const Json*> Objects(const Kind& kind) const;

  // --- Time.
  // Lets kubelets and the garbage collector work until now. Returns violations of the ledger.
  std::vector<std::string> Play();
  // Runs at the first Play() after this time; ApiErrors are ignored.
  void Later(TimeMs after, std::function<void()> request);

  // --- Watches.
  Json ListNow(Source source) const;
  // Forgets what happened until now: a watcher that has not seen it finds its version expired.
  void Compact() { compacted_ = version_; }

  // --- Api.
  Json Get(const Kind&, const std::string&, const std::string&, const std::string&) override;
  Json List(const Kind&, const std::string&, const Selector&) override;
  Json Create(const Kind&, const std::string&, const Json&) override;
  Json Replace(const Kind&, const std::string&, const Json&, const std::string&) override;
  Json MergePatch(const Kind&, const std::string&, const std::string&, const Json&,
                  const std::string&) override;
  void Delete(const Kind&, const std::string&, const std::string&, const std::string&,
              std::optional<int64_t>) override;
  void Bind(const std::string&, const std::string&, const std::string&,
            const std::string&) override;
  // Passes on what has happened and a bookmark, then ends.
  void Watch(const Kind&, const std::string&, const Selector&, const std::string&,
             const std::function<void(std::string_view, Json&&)>&) override;

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  using Object = std::shared_ptr<const Json>;
  struct Change {
    int64_t version;
    const char* type;
    Object object;
  };
  struct Work {
    Program program;
    bool saves = false;
    TimeMs left = 0;
    int failures = 0;     // to come
    int finished = 0;     // attempts that ended with 0
    bool unseen = false;  // the pods of such an attempt were gone before its job's status said so
  };
  // The containers of a bound pod.
  struct Container {
    Pod pod;
    int64_t world_size = 1;
    bool cannot_pull = false;
    enum { kNone, kRunning, kEnded } state = kNone;
    TimeMs next = 0;  // when it starts, or ends after it was told to
    bool told = false;
    bool done = false;        // ended with 0 by itself
    TimeMs gone_at = kNever;  // when its object is gone
  };

  uint32_t Draw(uint32_t below) { return Philox::Draw(seed_, draws_++, 7)[0] % below; }
  bool Chance(double probability) { return Draw(1'000'000) < probability * 1e6; }
  void Authorize(const Kind& kind, const std::string& ns) const;
  const Json& Find(const Kind& kind, const std::string& ns, const std::string& name) const;
  const Json& Store(const std::string& plural, const Key& key, Json object);
  void Erase(const std::string& plural, const Key& key);
  bool Exists(const Kind& kind, const Key& key) const;
  void Trace(const char* what, const Json& object) const;

  void Follow(const Key& key, const Json& pod);
  void Forget(const std::string& uid);
  void CollectGarbage();
  bool IsReached(const Container& container) const;
  bool HasPower(const Container& container) const;
  void ReportEnded(const std::string& node);
  void Confirm(const Key& key);
  void EndContainer(Container& container, int exit_code);
  bool HasRoom(const Container& container) const;
  void PlayContainer(const std::string& uid, TimeMs now);
  struct Machines {
    int gpus = 0;
    TimeMs boot_ms = 0;
    bool any_goes = false;
    int made = 0;
    std::vector<TimeMs> booting;  // until when
  };
  void PlayMachines(TimeMs now);
  void PlayPrograms(TimeMs ran);
  void CheckLedger(std::vector<std::string>& wrong) const;

  const uint64_t seed_;
  const Clock& clock_;
  const bool traces_ = std::getenv("RENZAN_TEST_TRACE") != nullptr;
  uint64_t draws_ = 0;
  int64_t version_ = 1, compacted_ = 0, uids_ = 0;
  TimeMs played_ = 0;
  std::map<std::string, std::map<Key, Object>> objects_;  // by plural
  std::map<std::string, std::vector<Change>> changes_;    // by plural
  std::multimap<TimeMs, std::function<void()>> later_;
  std::set<std::string> dead_nodes_, cut_off_nodes_;
  std::map<std::string, Machines> machines_;     // by pool
  std::map<std::string, Work> work_;             // by the job's uid
  std::map<std::string, Container> containers_;  // by the pod's uid
};

}  // namespace renzan::cluster::kubernetes
