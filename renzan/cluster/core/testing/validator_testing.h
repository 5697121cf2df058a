#pragma once

// The fixture of the validator's tests: a small cluster, and decisions that a test writes itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {

// A node or worker with this many GPUs has 4 cores and 32 GiB for each.
inline Resources Gpus(int64_t gpus) {
  constexpr int64_t kGiB = 1024;
  return {.amount = {gpus * 4'000, gpus * 32 * kGiB, gpus}};
}

// Four nodes of 8 GPUs, two per rack; queues a (8 GPUs guaranteed) and b (8 guaranteed, limit 24);
// one user without a cap and one with a cap of 8.
class Validator : public ::testing::Test {
 protected:
  Validator() {
    snapshot.now = 1'000'000;
    snapshot.topology_levels = {"rack"};
    snapshot.pools = {
        {.name = "own", .capacity = Gpus(8), .min_nodes = 4, .max_nodes = 4},
        {.name = "spot", .capacity = Gpus(8), .spot = true, .max_nodes = 2, .price_per_hour = 10}};
    snapshot.budget_per_hour = 15;
    for (int node = 0; node < 4; ++node)
      snapshot.nodes.push_back({.name = "own-" + std::to_string(node),
                                .pool = 0,
                                .capacity = Gpus(8),
                                .labels = {{"rack", node < 2 ? "0" : "1"}, {"gpu_model", "a100"}}});
    Resources limit = Queue::Unlimited();
    limit[kGpu] = 24;
    snapshot.queues = {{.name = "a", .guaranteed = {.amount = {0, 0, 8}}},
                       {.name = "b", .guaranteed = {.amount = {0, 0, 8}}, .limit = limit}};
    snapshot.users = {{.name = "ann"}, {.name = "bob", .max_gpus = 8}};
  }

  // A pending job with the next id. Each worker has `gpus` GPUs.
  Job& Add(int queue, int64_t gpus, int workers = 1) {
    Job job = {.id = static_cast<JobId>(snapshot.jobs.size()) + 1,
               .request = snapshot.InternRequest({.per_worker = Gpus(gpus)}),
               .queue = queue,
               .min_workers = workers,
               .max_workers = workers,
               .checkpoints = true};
    snapshot.jobs.push_back(job);
    return snapshot.jobs.back();
  }

  Job& AddRunning(int queue, int64_t gpus, Placement placement) {
    Job& job = Add(queue, gpus, NumWorkers(placement));
    job.state = JobState::kRunning;
    job.placement = placement;
    return job;
  }

  void SetRequest(Job& job, WorkerRequest request) {
    job.request = snapshot.InternRequest(request);
  }

  void ExpectClean() { EXPECT_THAT(ValidateDecisions(snapshot, decisions), ::testing::IsEmpty()); }
  void ExpectFault(const std::string& fault) {
    EXPECT_THAT(ValidateDecisions(snapshot, decisions),
                ::testing::Contains(::testing::HasSubstr(fault)));
  }

  Snapshot snapshot;
  Decisions decisions;
};

}  // namespace renzan::cluster
