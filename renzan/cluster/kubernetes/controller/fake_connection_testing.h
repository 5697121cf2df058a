#pragma once

// The connection between a replica of the controller and the API server (fake_cluster_testing.h),
// for tests: answers that are lost, requests that arrive late, a server that is down, other clients
// that come in between, and the end of the replica itself.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "renzan/base/philox.h"
#include "renzan/cluster/kubernetes/controller/fake_cluster_testing.h"

namespace renzan::cluster::kubernetes {

// Thrown by a request of a replica that is killed: not an Error, so that nobody handles it.
struct Killed {};

// Shared by all replicas.
struct Network {
  // The probability that a request gets no answer. A third of such requests were executed; a third
  // will be executed later, when their sender may no longer exist.
  double no_answer = 0;
  TimeMs latest_ms = 30 * kSecond;
  bool is_down = false;  // nobody can reach the server
};

class FakeConnection : public Api {
 public:
  // `cluster` and `network` must outlive it.
  FakeConnection(uint64_t seed, FakeCluster& cluster, const Network& network)
      : seed_(seed), cluster_(cluster), network_(network) {}

  // Called before each request: what others do meanwhile.
  std::function<void()> meanwhile;
  // The replica is killed instead of sending one more request.
  std::optional<int> requests_left;

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
  void Watch(const Kind&, const std::string&, const Selector&, const std::string&,
             const std::function<void(std::string_view, Json&&)>&) override;

 private:
  uint32_t Draw(uint32_t below) { return Philox::Draw(seed_, draws_++, 11)[0] % below; }
  void Begin();
  // Calls `execute(cluster)` now, later, or never.
  template <typename Execute>
  auto Send(Execute execute);

  const uint64_t seed_;
  FakeCluster& cluster_;
  const Network& network_;
  uint64_t draws_ = 0;
};

}  // namespace renzan::cluster::kubernetes
