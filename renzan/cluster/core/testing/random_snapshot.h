#pragma once

// Clusters and jobs made from a seed, for property tests. Same seed, same snapshot.

#include <cstdint>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A sequence of random numbers. Not thread-safe.
class Draws {
 public:
  explicit Draws(uint64_t seed);

  // From `low` to `high`, inclusive.
  int64_t Between(int64_t low, int64_t high);
  bool Chance(double probability);
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Between(0, static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  const uint64_t key_;
  uint64_t next_ = 0;
};

// Nodes of several machine types in racks: own machines and perhaps scaled pools (spot or not, each
// in one rack); queues with and without quotas; users with and without caps. No jobs.
Snapshot RandomCluster(Draws& draws);

// Gives some queues fair share.
void AddFairShare(Draws draws, Snapshot& snapshot);

// Gives some queues parents, which come after all others and get no jobs.
void AddParents(Draws draws, Snapshot& snapshot);

// Node `number` of a pool, ready.
Node RandomNode(Draws& draws, const Snapshot& snapshot, int pool, int number);

// A random pending job. Interns its request in `snapshot`, but does not add the job.
Job RandomJob(Draws& draws, Snapshot& snapshot, JobId id);

// A cluster with jobs in all states, valid by ValidateSnapshot().
Snapshot RandomSnapshot(uint64_t seed);

// Makes one job or node inconsistent: a SnapshotFault. Returns false if the job it picks cannot be
// made so.
bool InjectFault(Draws& draws, Snapshot& snapshot);

}  // namespace renzan::cluster
