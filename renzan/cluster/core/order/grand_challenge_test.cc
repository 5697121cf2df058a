#include "renzan/cluster/core/order/grand_challenge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GrandChallenge, StopsEveryPreemptibleJob) {
  Snapshot snapshot;
  snapshot.now = 1'000'000;
  const Resources eight = {.amount = {0, 0, 8}};
  snapshot.nodes = {{.name = "n0", .capacity = eight},
                    {.name = "n1", .capacity = eight},
                    {.name = "n2", .capacity = eight},
                    {.name = "n3", .capacity = eight, .state = NodeState::kDraining}};
  snapshot.worker_requests = {{.per_worker = {.amount = {0, 0, 4}}}};
  snapshot.jobs = {
      {.id = 1,
       .checkpoints = true,
       .grace_ms = 90'000,
       .state = JobState::kRunning,
       .placement = {{0, 2}},
       .restart_cost_ms = 10'000,
       .state_bytes = 500},
      {.id = 2,
       .grace_ms = 5'000,
       .state = JobState::kRunning,
       .placement = {{1, 1}},
       .started = 900'000,
       .state_bytes = 700},
      {.id = 3, .preemptible = false, .state = JobState::kRunning, .placement = {{2, 1}}},
      {.id = 4, .grace_ms = 120'000, .state = JobState::kStopping, .placement = {{1, 1}}},
      {.id = 5}};
  Job grand = {
      .id = 6, .min_workers = 4, .max_workers = 8, .preemptible = false, .quota_exempt = true};

  GrandChallengePlan plan = PlanGrandChallenge(snapshot, grand);
  EXPECT_THAT(plan.stops, ElementsAre(1, 2));
  EXPECT_THAT(plan.loses_work, ElementsAre(2));
  EXPECT_EQ(plan.bytes_to_save, 500);
  EXPECT_DOUBLE_EQ(plan.gpu_seconds_lost, 2 * 4 * 10 + 4 * 100);
  EXPECT_EQ(plan.earliest_start, 1'120'000);
  EXPECT_THAT(plan.placement, ElementsAre(Placed{0, 2}, Placed{1, 2}, Placed{2, 1}));

  grand.min_workers = 6;
  EXPECT_THAT(PlanGrandChallenge(snapshot, grand).placement, IsEmpty());
  grand.min_workers = 2;
  snapshot.worker_requests.push_back(
      {.per_worker = {.amount = {0, 0, 4}}, .topology_level = "host", .topology_required = true});
  grand.request = 1;
  EXPECT_THAT(PlanGrandChallenge(snapshot, grand).placement, ElementsAre(Placed{0, 2}));
}

}  // namespace
}  // namespace renzan::cluster
