#include "renzan/cluster/core/resize/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/engine/carry_out.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::IsEmpty;

MATCHER_P2(Buys, pool, nodes, "") { return arg.pool == pool && arg.nodes == nodes; }

// Pools: own (no price, 8 GPUs, 0..2), small (4 GPUs, 3 an hour), large (8 GPUs, 5 an hour), spot
// (8 GPUs, 2 an hour). No nodes.
class Pools : public testing::Test {
 protected:
  Pools() {
    snapshot.now = 60'000'000;
    snapshot.pools = {
        {.name = "own", .capacity = GpusWithCpus(8), .max_nodes = 2},
        {.name = "small", .capacity = GpusWithCpus(4), .max_nodes = 4, .price_per_hour = 3},
        {.name = "large", .capacity = GpusWithCpus(8), .max_nodes = 4, .price_per_hour = 5},
        {.name = "spot",
         .capacity = GpusWithCpus(8),
         .spot = true,
         .max_nodes = 4,
         .price_per_hour = 2}};
    snapshot.queues = {{.name = "a"}};
    snapshot.users = {{.name = "ann"}};
  }
  Job& Add(int64_t gpus, int workers, WaitReason reason = WaitReason::kResources) {
    snapshot.jobs.push_back({.id = static_cast<JobId>(snapshot.jobs.size()) + 1,
                             .request = snapshot.InternRequest({.per_worker = GpusWithCpus(gpus)}),
                             .min_workers = workers,
                             .max_workers = workers});
    before.waits.push_back({snapshot.jobs.back().id, reason});
    return snapshot.jobs.back();
  }
  void AddNode(int pool, NodeState state = NodeState::kReady) {
    snapshot.nodes.push_back({.name = "node",
                              .pool = pool,
                              .capacity = snapshot.pools[pool].capacity,
                              .state = state,
                              .idle_since = snapshot.now - 600'000});
  }
  Decisions Scale() {
    Decisions decisions = before;
    ScalePools(snapshot, decisions);
    return decisions;
  }
  Snapshot snapshot;
  Decisions before;
};

TEST_F(Pools, OwnMachinesFirstThenTheCheapest) {
  Add(8, 2);
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 2)));
  EXPECT_EQ(Scale().waits[0].reason, WaitReason::kNodesBooting);
  Add(4, 1);  // small costs 3, large 5
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 2), Buys(1, 1)));
  Add(4, 2);  // two small cost 6, a large one 5
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 2), Buys(1, 1), Buys(2, 1)));
}

TEST_F(Pools, AClusterWithoutNodesBuysThem) {
  Add(8, 1);
  EXPECT_THAT(Schedule(snapshot).scale_out, testing::ElementsAre(Buys(0, 1)));
  EXPECT_EQ(Explain(snapshot, 1).reason, WaitReason::kNodesBooting);
}

// Own: two nodes, each with a job of priority 0 that saves its work. Two large nodes can be bought.
class PoolsAndStops : public ScheduleTest {
 protected:
  PoolsAndStops() {
    snapshot.pools = {{.name = "own", .capacity = kCapacity, .min_nodes = 2, .max_nodes = 2},
                      {.name = "large",
                       .capacity = kCapacity,
                       .max_nodes = 2,
                       .price_per_hour = 5,
                       .boot_ms = 3 * kMinute}};
    Nodes(2);
    for (Node& node : snapshot.nodes) node.pool = 0;
    for (const int node : {0, 1}) Add({.gpus = 8, .on = {{node, 1}}});
  }
  // Carries the decisions out as an environment does.
  void Apply(const Decisions& decisions) { CarryOut(decisions, snapshot, environment_); }
  const Resources kCapacity = {.amount = {64'000, 512 * 1024, 8}};

 private:
  class : public Environment {
    void Perform(const Start&) override {}
    void Perform(const Stop&) override {}
    void Perform(const Resize&) override {}
    void Perform(const CheckpointRequest&) override {}
    void Perform(const NodeChange&) override {}
  } environment_;
};

TEST_F(PoolsAndStops, TogetherWhereNeitherSuffices) {
  const JobId job = Add({.priority = 50, .workers = 3, .gpus = 8});
  Decisions decisions = Run();
  EXPECT_THAT(decisions.scale_out, testing::ElementsAre(Buys(1, 1)));
  EXPECT_THAT(Stopped(decisions), IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kNodesBooting);
  EXPECT_EQ(Explain(snapshot, job).why, "nodes for it are being bought");
  Apply(decisions);
  // While they boot, which may fail, nobody is stopped, and nobody else gets them.
  const JobId other = Add({.gpus = 8});
  decisions = Run();
  EXPECT_THAT(Stopped(decisions), IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kNodesBooting);
  EXPECT_THAT(decisions.scale_out, testing::ElementsAre(Buys(1, 1)));
  EXPECT_EQ(ReasonOf(decisions, other), WaitReason::kNodesBooting);
  snapshot.jobs.pop_back();
  EXPECT_THAT(Run().scale_out, IsEmpty());
  snapshot.nodes.back().state = NodeState::kReady;
  snapshot.nodes.back().until = kNever;
  decisions = Run();
  EXPECT_THAT(Stopped(decisions), testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kPipelined);
  EXPECT_THAT(decisions.scale_in, IsEmpty());
}

TEST_F(PoolsAndStops, NothingIsStoppedWhereAPurchaseSuffices) {
  Add({.priority = 50, .workers = 2, .gpus = 8, .preemptible = false});
  snapshot.jobs[0].preemptible = snapshot.jobs[1].preemptible = false;
  EXPECT_THAT(Run().scale_out, testing::ElementsAre(Buys(1, 2)));
}

TEST_F(PoolsAndStops, NothingIsBoughtForAJobThatMayNotStopTheOthers) {
  Add({.priority = 0, .workers = 3, .gpus = 8});
  EXPECT_THAT(Run().scale_out, IsEmpty());
  snapshot.jobs.back().priority = 50;
  snapshot.jobs[1].preemptible = false;  // two are bought then, and one job is stopped
  EXPECT_THAT(Run().scale_out, testing::ElementsAre(Buys(1, 2)));
  snapshot.jobs[0].preemptible = false;
  EXPECT_THAT(Run().scale_out, IsEmpty());
}

// By amounts alone, one bought node and stopping the first job's four GPUs on each of both nodes
// would do. But the other four GPUs stay in use.
TEST_F(PoolsAndStops, NothingIsBoughtThatWouldNotHelp) {
  snapshot.jobs.clear();
  for (const bool preemptible : {true, false})
    for (const int node : {0, 1}) Add({.gpus = 4, .on = {{node, 1}}, .preemptible = preemptible});
  snapshot.pools[1].max_nodes = 1;
  const JobId job = Add({.priority = 50, .workers = 2, .gpus = 8});
  const Decisions decisions = Run();
  EXPECT_THAT(decisions.scale_out, IsEmpty());
  EXPECT_EQ(ReasonOf(decisions, job), WaitReason::kResources);
}

TEST_F(PoolsAndStops, WithinTheBudget) {
  Add({.priority = 50, .workers = 3, .gpus = 8});
  snapshot.budget_per_hour = 4;
  EXPECT_THAT(Run().scale_out, IsEmpty());
  snapshot.budget_per_hour = 5;
  EXPECT_THAT(Run().scale_out, testing::ElementsAre(Buys(1, 1)));
}

// A gang bound to one rack: bought nodes count where they are in it.
TEST_F(PoolsAndStops, InOneRack) {
  snapshot.topology_levels = {"rack"};
  for (Node& node : snapshot.nodes) node.labels["rack"] = "r1";
  Add({.priority = 50,
       .workers = 3,
       .gpus = 8,
       .request = {.topology_level = "rack", .topology_required = true}});
  EXPECT_THAT(Run().scale_out, IsEmpty());
  snapshot.pools[1].labels["rack"] = "r1";
  EXPECT_THAT(Run().scale_out, testing::ElementsAre(Buys(1, 1)));
}

TEST_F(Pools, SpotOnlyForJobsThatCheckpoint) {
  snapshot.pools[0].max_nodes = 0;
  Job& job = Add(8, 1);
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(2, 1)));
  job.checkpoints = true;
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(3, 1)));
}

TEST_F(Pools, ExplainSuggestsOnlyWhatWouldBeBought) {
  snapshot.pools[0].max_nodes = 0;
  for (const int pool : {2, 2, 2, 2}) AddNode(pool);
  for (Node& node : snapshot.nodes) node.state = NodeState::kCordoned;
  Job& job = Add(8, 1);
  const auto advice = [&] { return Explain(snapshot, job.id).would_start_with; };
  EXPECT_THAT(advice(), testing::Contains("if pool large could have 5 nodes instead of 4"));
  EXPECT_THAT(advice(),
              testing::Contains("if node node were restored (renzan nodes restore node)"));
  EXPECT_THAT(advice(), Not(testing::Contains(testing::HasSubstr("pool spot"))));
  snapshot.pools[2].max_nodes = 5;
  EXPECT_EQ(Explain(snapshot, job.id).reason, WaitReason::kNodesBooting);
  snapshot.budget_per_hour = 21;
  EXPECT_THAT(advice(), testing::Contains("if the budget were 25 an hour instead of 21"));
}

TEST_F(Pools, BuysForWholeGangsOnly) {
  Add(8, 7);  // 2 own and 4 large
  EXPECT_THAT(Scale().scale_out, IsEmpty());
  EXPECT_EQ(Scale().waits[0].reason, WaitReason::kResources);
  snapshot.jobs[0].min_workers = 6;
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 2), Buys(2, 4)));
  snapshot.budget_per_hour = 19;
  EXPECT_THAT(Scale().scale_out, IsEmpty());
  snapshot.budget_per_hour = 20;
  EXPECT_THAT(Scale().scale_out, testing::SizeIs(2));
}

TEST_F(Pools, CountsBootingAndFreeNodes) {
  AddNode(0, NodeState::kBooting);
  Add(8, 1);
  EXPECT_THAT(Scale().scale_out, IsEmpty());
  Add(8, 1);
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 1)));
  snapshot.nodes[0].state = NodeState::kDraining;  // may be replaced
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 2)));
}

TEST_F(Pools, BuysOnlyForJobsThatWaitForResourcesAndAreWithinLimits) {
  for (const WaitReason reason : {WaitReason::kInfeasible, WaitReason::kBackoff,
                                  WaitReason::kUserCap, WaitReason::kQueueLimit})
    Add(8, 1, reason);
  EXPECT_THAT(Scale().scale_out, IsEmpty());
  Add(8, 1, WaitReason::kReserved);
  Add(8, 1, WaitReason::kFragmented);
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 2)));
  snapshot.queues[0].limit[kGpu] = 8;  // only one of them may run
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 1)));
}

TEST_F(Pools, LabelsAndHosts) {
  Job& job = Add(4, 2);
  snapshot.pools[2].labels["gpu_model"] = "h100";
  job.request =
      snapshot.InternRequest({.per_worker = GpusWithCpus(4), .required = {{"gpu_model", "h100"}}});
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(2, 1)));
  snapshot.pools[0].max_nodes = 0;
  job.request = snapshot.InternRequest(
      {.per_worker = GpusWithCpus(2), .topology_level = "host", .topology_required = true});
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(1, 1)));
  job.min_workers = 4;
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(2, 1)));
}

// The node that it excludes is no room for it.
TEST_F(Pools, AGangOnOneHostBuysInPlaceOfANodeThatItExcludes) {
  for (const char* topology : {"", "host"}) {
    snapshot.jobs.clear();
    snapshot.nodes.clear();
    before = {};
    AddNode(0);
    Job& job = Add(2, 2);
    job.request = snapshot.InternRequest({.per_worker = GpusWithCpus(2),
                                          .topology_level = topology,
                                          .topology_required = *topology != 0,
                                          .excluded_nodes = {"node"}});
    EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(0, 1))) << topology;
  }
}

TEST_F(Pools, ReturnsIdleNodesDownToTheMinimum) {
  for (const int pool : {1, 2, 2}) AddNode(pool);
  ASSERT_EQ(Scale().scale_in.size(), 3u);
  EXPECT_EQ(Scale().scale_in[0].node, 1);  // the most expensive
  snapshot.pools[2].min_nodes = 1;
  EXPECT_EQ(Scale().scale_in.size(), 2u);
  snapshot.nodes[0].idle_since += 1;
  EXPECT_EQ(Scale().scale_in.size(), 1u);
  EXPECT_EQ(Scale().look_again, snapshot.now + 1);
  snapshot.pools[2].min_nodes = snapshot.pools[2].max_nodes = 2;  // never scaled
  EXPECT_THAT(Scale().scale_in, IsEmpty());
}

TEST_F(Pools, KeepsNodesThatAreInUseOrReserved) {
  AddNode(2);
  AddNode(2);
  Add(8, 1);
  before.reservations = {{1, {{0, 1}}}};
  before.starts = {};
  snapshot.pools[2].max_nodes = 2;
  snapshot.jobs.push_back(
      {.id = 2, .request = 0, .state = JobState::kStopping, .placement = {{1, 1}}});
  EXPECT_THAT(Scale().scale_in, IsEmpty());
  before.reservations = {};
  before.waits = {};
  ASSERT_EQ(Scale().scale_in.size(), 1u);
  EXPECT_EQ(Scale().scale_in[0].node, 0);
}

TEST_F(Pools, RefillsAScaledPoolToItsMinimum) {
  snapshot.pools[1].min_nodes = 2;
  AddNode(1, NodeState::kGone);
  EXPECT_THAT(Scale().scale_out, testing::ElementsAre(Buys(1, 2)));
}

}  // namespace
}  // namespace renzan::cluster
