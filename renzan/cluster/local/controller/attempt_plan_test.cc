#include "renzan/cluster/local/controller/attempt_plan.h"

#include <gmock/gmock.h>

#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AttemptPlanTest : public ::testing::Test {
 protected:
  AttemptPlanTest() {
    spec::ClusterConfig config;
    config.pools["own"].nodes = "2";
    config.pools["own"].resources.gpu = 4;
    state_.snapshot = spec::MakeSnapshot(config, 0);
  }
  void RunsOn(NamedPlacement placement) {
    state_.live[1].record.attempt.emplace().placement = std::move(placement);
  }

  ClusterState state_;
};

TEST_F(AttemptPlanTest, WorkersGetTheLowestFreeDevicesOfTheirNode) {
  RunsOn({{.node = "own-0", .workers = 2, .devices = {{0}, {2}}}});
  state_.live[2];  // pending: has none
  const NamedPlacement placement = WithDevices(state_, {{0, 2}, {1, 1}}, 1);
  ASSERT_EQ(placement.size(), 2u);
  EXPECT_EQ(placement[0].node, "own-0");
  EXPECT_THAT(placement[0].devices, ElementsAre(ElementsAre(1), ElementsAre(3)));
  EXPECT_EQ(placement[1].node, "own-1");
  EXPECT_THAT(placement[1].devices, ElementsAre(ElementsAre(0)));
}

TEST_F(AttemptPlanTest, NodesOfOneMachineShareItsDevices) {
  state_.machine_gpus = 8;
  RunsOn({{.node = "own-1", .workers = 1, .devices = {{0, 3}}}});
  const NamedPlacement placement = WithDevices(state_, {{0, 2}, {1, 1}}, 2);
  EXPECT_THAT(placement[0].devices, ElementsAre(ElementsAre(1, 2), ElementsAre(4, 5)));
  EXPECT_THAT(placement[1].devices, ElementsAre(ElementsAre(6, 7)));
}

TEST_F(AttemptPlanTest, WorkersWithoutGpusGetNoDevices) {
  EXPECT_THAT(WithDevices(state_, {{0, 1}}, 0)[0].devices, ElementsAre(IsEmpty()));
}

TEST_F(AttemptPlanTest, HasAWorkerForEachRankAndTheTimeThatIsLeft) {
  LiveRecord live{.policy = {.timeout_ms = 1000}};
  live.record.id = 7;
  live.record.uid = 1000;
  live.record.run_ms = 400;
  AttemptRecord& attempt = live.record.attempt.emplace();
  attempt.job = 7;
  attempt.number = 3;
  attempt.placement = {{"own-0", 1, {{2}}}, {"own-1", 2, {{0}, {1}}}};
  Resources per_worker;
  per_worker[kCpu] = 1500;
  per_worker[kMemory] = 64;
  const AttemptPlan plan = MakeAttemptPlan(
      live, per_worker, JobDirectories("/state"), "/state/inherited/7.json",
      {.memory = true,
       .max_disk_mib = 77,
       .cgroups = {.name = "", .hold = {"/groups", true}, .cpu = {}, .memory = {}, .devices = {}},
       .gpus = {70, 71, 72, 73, 74}});
  EXPECT_EQ(plan.attempt, 3);
  EXPECT_EQ(plan.run_dir, "/state/jobs/7/run");
  EXPECT_EQ(plan.inherited_file, "/state/inherited/7.json");
  EXPECT_EQ(plan.uid, 1000u);
  EXPECT_EQ(plan.timeout_ms, 600);
  EXPECT_TRUE(plan.enforce_memory);
  EXPECT_EQ(plan.max_disk_mib, 77);
  EXPECT_EQ(plan.cgroups.hold.directory, "/groups");
  ASSERT_EQ(plan.workers.size(), 3u);
  EXPECT_EQ(plan.workers[2].node, "own-1");
  EXPECT_EQ(plan.workers[2].local_rank, 1);
  EXPECT_THAT(plan.workers[2].devices, ElementsAre(1));
  EXPECT_EQ(plan.workers[2].cpu_millis, 1500);
  EXPECT_EQ(plan.workers[2].memory_mib, 64);
  EXPECT_THAT(plan.denied_devices, ElementsAre(73, 74));
}

}  // namespace
}  // namespace renzan::cluster::local
