#include <gtest/gtest.h>

#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

// Two nodes of 8 GPUs (a100) in one rack, one of 4 (v100) in another; a pool of at most 3 nodes of
// 8 GPUs, none of which exists yet.
class Infeasible : public testing::Test {
 protected:
  Infeasible() {
    snapshot.topology_levels = {"rack"};
    snapshot.pools = {{.name = "cloud", .capacity = GpusWithCpus(8), .max_nodes = 3}};
    snapshot.nodes = {{.name = "a-0",
                       .capacity = GpusWithCpus(8),
                       .labels = {{"rack", "0"}, {"gpu_model", "a100"}}},
                      {.name = "a-1",
                       .capacity = GpusWithCpus(8),
                       .labels = {{"rack", "0"}, {"gpu_model", "a100"}}},
                      {.name = "v-0",
                       .capacity = GpusWithCpus(4),
                       .labels = {{"rack", "1"}, {"gpu_model", "v100"}}}};
    snapshot.queues = {{.name = "vision"}};
    snapshot.users = {{.name = "ann"}};
  }
  std::string Why(int workers, WorkerRequest request) {
    job.request = snapshot.InternRequest(request);
    job.min_workers = job.max_workers = workers;
    return WhyInfeasible(snapshot, job);
  }
  Snapshot snapshot;
  Job job{.id = 7};
};

TEST_F(Infeasible, MoreThanTheEmptyClusterWithAllPoolsAtTheirMaximum) {
  EXPECT_EQ(Why(5, {.per_worker = GpusWithCpus(8)}), "");
  EXPECT_EQ(Why(6, {.per_worker = GpusWithCpus(8)}),
            "needs 6 workers of 8 GPUs, 8 CPUs and 8 GiB of memory; with every pool at its maximum "
            "there is room for 5");
  snapshot.pools.clear();
  EXPECT_EQ(Why(3, {.per_worker = GpusWithCpus(8)}),
            "needs 3 workers of 8 GPUs, 8 CPUs and 8 GiB of memory; on the empty cluster there is "
            "room for 2");
  snapshot.nodes.clear();
  EXPECT_EQ(Why(1, {}), "the cluster has no nodes");
}

TEST_F(Infeasible, APoolCanReplaceAFailedNode) {
  snapshot.pools[0].max_nodes = 1;
  snapshot.nodes.push_back({.name = "cloud-0", .pool = 0, .capacity = GpusWithCpus(8)});
  EXPECT_EQ(Why(3, {.per_worker = GpusWithCpus(8)}), "");
  snapshot.nodes[3].state = NodeState::kGone;
  EXPECT_EQ(Why(3, {.per_worker = GpusWithCpus(8)}), "");
  snapshot.nodes[0].state = NodeState::kGone;  // of no pool
  EXPECT_NE(Why(3, {.per_worker = GpusWithCpus(8)}), "");
}

// A job that excluded a drained node was accepted, and waited for ever.
TEST_F(Infeasible, NodesOfAFixedPoolKeepTheirNames) {
  snapshot.pools = {{.name = "own", .capacity = GpusWithCpus(2), .min_nodes = 4, .max_nodes = 4}};
  snapshot.nodes.clear();
  for (const char* name : {"own-0", "own-1", "own-2", "own-3"})
    snapshot.nodes.push_back({.name = name, .pool = 0, .capacity = GpusWithCpus(2)});
  const WorkerRequest request{.per_worker = GpusWithCpus(2), .excluded_nodes = {"own-0", "own-1"}};
  const auto expect_room_for_two = [&](const std::string& state) {
    EXPECT_EQ(Why(2, request), "") << state;
    EXPECT_EQ(Why(3, request),
              "needs 3 workers of 2 GPUs, 2 CPUs and 2 GiB of memory; on the empty cluster there "
              "is room for 2 on nodes that it does not exclude")
        << state;
  };
  expect_room_for_two("ready");
  for (const NodeState state : {NodeState::kCordoned, NodeState::kDraining, NodeState::kGone})
    for (const size_t node : {0, 3}) {
      snapshot.nodes[node].state = state;
      expect_room_for_two(std::to_string(static_cast<int>(state)));
      snapshot.nodes[node].state = NodeState::kReady;
    }
  snapshot.nodes[0].state = NodeState::kDraining;
  snapshot.nodes[0].until = 1'000;  // with a notice: it is gone then
  expect_room_for_two("goes away");
  // One that has not been there yet has no name.
  snapshot.nodes.pop_back();
  EXPECT_EQ(Why(2, request), "");
  EXPECT_NE(Why(3, request), "");
}

TEST_F(Infeasible, OneWorkerIsTooLarge) {
  EXPECT_EQ(Why(1, {.per_worker = GpusWithCpus(16)}),
            "needs 16 GPUs on one node; the largest has 8 GPUs (a-0)");
  EXPECT_EQ(Why(1, {.per_worker = GpusWithCpus(8), .required = {{"gpu_model", "v100"}}}),
            "needs 8 GPUs on one node; the largest with its labels has 4 GPUs (v-0)");
  EXPECT_EQ(Why(1, {.per_worker = {.amount = {1'000, 512 * 1'024, 1}}}),
            "needs 512 GiB of memory on one node; the largest has 8 GiB of memory (a-0)");
  snapshot.resource_names.push_back("rdma");
  EXPECT_EQ(Why(1, {.per_worker = {.amount = {0, 0, 0, 2}}}),
            "needs 2 of rdma on one node; no node has any");
}

TEST_F(Infeasible, NoNodeHasItsLabels) {
  EXPECT_EQ(Why(1, {.required = {{"gpu_model", "h100"}}}),
            "no node has label gpu_model=h100 (there are a100, v100)");
  EXPECT_EQ(Why(1, {.required = {{"disk", "nvme"}}}),
            "no node has a label disk (it requests nvme)");
  EXPECT_EQ(Why(1, {.required = {{"gpu_model", "v100"}, {"rack", "0"}}}),
            "no node has all of the labels gpu_model=v100, rack=0");
}

TEST_F(Infeasible, NoDomainIsLargeEnough) {
  WorkerRequest request = {
      .per_worker = GpusWithCpus(4), .topology_level = "rack", .topology_required = true};
  EXPECT_EQ(Why(10, request), "");  // new nodes may be in any rack
  snapshot.pools[0].labels["rack"] = "1";
  EXPECT_EQ(Why(7, request), "");
  EXPECT_EQ(Why(8, request),
            "needs 8 workers of 4 GPUs, 4 CPUs and 4 GiB of memory in one rack; the largest (1) "
            "has room for 7");
  request.topology_level = "host";
  EXPECT_EQ(Why(2, request), "");
  EXPECT_NE(Why(3, request), "");
  request.topology_required = false;
  EXPECT_EQ(Why(3, request), "");
}

TEST_F(Infeasible, CountsOnlyNodesThatWouldBeBought) {
  EXPECT_EQ(Why(5, {.per_worker = GpusWithCpus(8)}), "");
  snapshot.pools[0].spot = true;
  EXPECT_EQ(Why(2, {.per_worker = GpusWithCpus(8)}), "");
  EXPECT_EQ(
      Why(5, {.per_worker = GpusWithCpus(8)}),
      "needs 5 workers of 8 GPUs, 8 CPUs and 8 GiB of memory; on the empty cluster there is "
      "room for 2; spot nodes are only bought for jobs that checkpoint (checkpoint: {on_stop: "
      "true})");
  snapshot.pools[0].min_nodes = 1;  // always present
  EXPECT_EQ(Why(3, {.per_worker = GpusWithCpus(8)}), "");
  job.checkpoints = true;
  EXPECT_EQ(Why(5, {.per_worker = GpusWithCpus(8)}), "");

  snapshot.pools[0].price_per_hour = 10;
  snapshot.budget_per_hour = 25;
  EXPECT_EQ(Why(4, {.per_worker = GpusWithCpus(8)}), "");
  EXPECT_EQ(Why(5, {.per_worker = GpusWithCpus(8)}),
            "needs 5 workers of 8 GPUs, 8 CPUs and 8 GiB of memory; the budget of 25 an hour does "
            "not cover the nodes that would have to be bought");
  // Nodes bought for other jobs can be returned; what fits on existing nodes needs no budget.
  snapshot.nodes.push_back({.name = "cloud-0", .pool = 0, .capacity = GpusWithCpus(8)});
  EXPECT_EQ(Why(4, {.per_worker = GpusWithCpus(8)}), "");
  snapshot.budget_per_hour = 0;
  EXPECT_EQ(Why(3, {.per_worker = GpusWithCpus(8)}), "");
  EXPECT_NE(Why(4, {.per_worker = GpusWithCpus(8)}), "");
}

TEST_F(Infeasible, AHeldJobSaysWhy) {
  job.held = "there is no longer any rdma";
  EXPECT_EQ(Why(1, {}), job.held);
}

TEST_F(Infeasible, QuotaIsBelowItsMinimum) {
  snapshot.queues[0].limit[kGpu] = 15;
  EXPECT_EQ(Why(2, {.per_worker = GpusWithCpus(8)}),
            "needs 16 GPUs; the limit of queue vision is 15 GPUs");
  snapshot.queues[0].limit[kGpu] = 16;
  EXPECT_EQ(Why(2, {.per_worker = GpusWithCpus(8)}), "");
  snapshot.users[0].max_gpus = 8;
  EXPECT_EQ(Why(2, {.per_worker = GpusWithCpus(8)}),
            "needs 16 GPUs; the cap of user ann is 8 GPUs");
  snapshot.users[0].quota_overrides = {{.max_gpus = 12, .until = 1}};
  EXPECT_EQ(Why(2, {.per_worker = GpusWithCpus(8)}),
            "needs 16 GPUs; the cap of user ann is 12 GPUs, including a temporary quota override");
  job.quota_exempt = true;
  EXPECT_EQ(Why(2, {.per_worker = GpusWithCpus(8)}), "");
}

}  // namespace
}  // namespace renzan::cluster
