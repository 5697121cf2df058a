#pragma once

// A cluster in memory and replicas of the controller, for tests.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/kubernetes/api/known_objects.h"
#include "renzan/cluster/kubernetes/controller/fake_connection_testing.h"
#include "renzan/cluster/kubernetes/controller/observe.h"

namespace renzan::cluster::kubernetes {

// A job of `replicas` workers with `gpus` GPUs each.
Json JobSpec(int replicas, int gpus, bool saves = true);

// A machine's clock, which may be wrong.
class WrongClock : public Clock {
 public:
  explicit WrongClock(const Clock& right) : right_(right) {}
  double MonotonicSeconds() const override { return right_.MonotonicSeconds(); }
  double UnixSeconds() const override { return right_.UnixSeconds() + ahead_seconds; }
  double ahead_seconds = 0;

 private:
  const Clock& right_;
};

// A replica of the controller, and what watches have shown it: uses the code of real watches, but
// no threads.
class Replica {
 public:
  Replica(const std::string& identity, uint64_t seed, FakeCluster& cluster, const Network& network,
          const Clock& right_clock, size_t at_once = ControllerOptions().at_once,
          bool serves_admission = false, bool rights_by_namespace = false);

  // Shows it up to `most` changes that it has not seen; all objects if it has seen none, or its
  // version has expired.
  void Show(Source source, size_t most = SIZE_MAX);
  // Does what a thread of its own would: shows all changes, and lets it work.
  void Work(size_t most_changes = SIZE_MAX);

  WrongClock clock;
  FakeConnection connection;
  const std::unique_ptr<Requests> requests;
  Controller controller;

 private:
  std::vector<std::pair<Source, WatchChange>> changes_;
  std::map<Source, KnownObjects> known_;
};

// A cluster, and the replica that leads.
struct World {
  // `at_once_`: see ControllerOptions.
  explicit World(uint64_t seed_ = 1, size_t at_once_ = ControllerOptions().at_once)
      : seed(seed_), at_once(at_once_), cluster(seed, clock) {
    StartController();
  }

  // Starts a new leader, which knows what the server has. Returns the previous one.
  std::unique_ptr<Replica> StartController();
  // Lets everybody work for `duration`.
  void Run(TimeMs duration, TimeMs step = kSecond / 2);
  // Kubelets only.
  void Play();

  std::string PhaseOf(const std::string& name) const;
  int64_t AttemptsOf(const std::string& name) const;
  // A text in the job's status.
  std::string StatusOf(const std::string& name, const char* key) const;
  // Messages of all events.
  std::vector<std::string> Told() const;
  // What a client makes of the objects that the server has.
  Observed SeenByClients() const;

  const uint64_t seed;
  const size_t at_once;
  bool serves_admission = false;     // of leaders that start from now on
  bool rights_by_namespace = false;  // likewise
  ManualClock clock;
  FakeCluster cluster;
  Network network;
  int replicas = 0;
  std::unique_ptr<Replica> leader;
  std::vector<std::string> wrong;  // as the ledger says
};

}  // namespace renzan::cluster::kubernetes
