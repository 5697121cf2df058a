#pragma once

// Clusters and jobs made from a seed, for property tests. Same seed, same snapshot.

#include <cstdint>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

inline constexpr TimeMs kSecond = 1'000, kMinute = 60'000, kHour = 3'600'000;

// Numbers drawn one after the other. Not thread-safe.
class Draws {
 public:
  explicit Draws(uint64_t seed);

  // From `low` to `high`, both included.
  int64_t Between(int64_t low, int64_t high);
  bool Chance(double probability);
  // One of some values.
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Between(0, static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  const uint64_t key_;
  uint64_t next_ = 0;
};

// Nodes of some worker_requests in racks, own ones and perhaps scaled pools (spot or not, all nodes
// of one in one rack); queues with and without quotas; users with and without caps. No jobs.
Snapshot RandomCluster(Draws& draws);

// The node number `number` of a pool, ready.
Node RandomNode(Draws& draws, const Snapshot& snapshot, int pool, int number);

// A pending job of any kind, with its request in `snapshot`; not added to it.
Job RandomJob(Draws& draws, Snapshot& snapshot, JobId id);

// A cluster with jobs in all states. ValidateSnapshot() has nothing against it.
Snapshot RandomSnapshot(uint64_t seed);

}  // namespace renzan::cluster
