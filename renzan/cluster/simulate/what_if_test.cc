#include "renzan/cluster/simulate/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/cluster/core/schedule.h"

namespace renzan::cluster::simulate {
namespace {

constexpr TimeMs kNow = 1'000'000'000, kMinute = 60'000;

// A node of four GPUs, all used by job 3 for ten minutes so far; job 7 needs two, job 9 four.
Snapshot OneNode() {
  Snapshot snapshot{.now = kNow};
  Resources capacity;
  capacity[kGpu] = 4;
  snapshot.pools = {{.name = "own", .capacity = capacity, .min_nodes = 1, .max_nodes = 1}};
  snapshot.nodes = {{.name = "own-0", .pool = 0, .capacity = capacity}};
  snapshot.queues = {{.name = "default"}};
  snapshot.users = {{.name = "ann"}};
  WorkerRequest four, two;
  four.per_worker[kGpu] = 4;
  two.per_worker[kGpu] = 2;
  snapshot.worker_requests = {four, two};
  snapshot.jobs = {
      {.id = 3, .request = 0, .submitted = kNow - 20 * kMinute, .state = JobState::kRunning},
      {.id = 7, .request = 1, .submitted = kNow - 9 * kMinute},
      {.id = 9, .request = 0, .submitted = kNow - 8 * kMinute}};
  snapshot.jobs[0].placement = {{0, 1}};
  snapshot.jobs[0].started = kNow - 10 * kMinute;
  return snapshot;
}

Decisions Decide(const Snapshot& snapshot) { return Schedule(snapshot); }

TEST(WhatIf, NodesAreAdded) {
  const auto rows = WhatIf(
      OneNode(), [](Snapshot& snapshot) { AddNodes(snapshot, "own", 1); }, Decide);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].job, 7);
  // All are assumed to run for an hour; job 3 has run for ten minutes of it.
  EXPECT_EQ(rows[0].before, kNow + 50 * kMinute);
  EXPECT_EQ(rows[1].before, kNow + 110 * kMinute);
  EXPECT_EQ(rows[0].after, kNow);
  EXPECT_EQ(rows[1].after, kNow + 50 * kMinute);
}

TEST(WhatIf, UsesTheExpectedEnd) {
  Snapshot snapshot = OneNode();
  snapshot.jobs[0].expected_end = kNow + 3 * kMinute;
  EXPECT_EQ(WhatIf(
                snapshot, [](Snapshot&) {}, Decide)[0]
                .before,
            kNow + 3 * kMinute);
}

TEST(WhatIf, AJobIsSubmitted) {
  const auto rows = WhatIf(
      OneNode(), [](Snapshot& snapshot) { AddJob(snapshot, {.request = 1, .submitted = kNow}); },
      Decide);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].job, 10);
  EXPECT_TRUE(rows[2].is_new);
  EXPECT_FALSE(rows[1].is_new);
  EXPECT_TRUE(rows[2].after.has_value());
}

TEST(WhatIf, ANodeIsRemoved) {
  const auto rows = WhatIf(
      OneNode(), [](Snapshot& snapshot) { RemoveNode(snapshot, "own-0"); }, Decide);
  EXPECT_EQ(rows[0].after, std::nullopt);
}

TEST(WhatIf, AParentFollowsItsQueuesUnlessItIsGivenMore) {
  Snapshot snapshot;
  snapshot.resource_names = {"cpu", "memory", "gpu"};
  snapshot.queues = {{.name = "vision", .guaranteed = {.amount = {0, 0, 16}}, .parent = 2},
                     {.name = "speech", .guaranteed = {.amount = {0, 0, 8}}, .parent = 2},
                     {.name = "research", .guaranteed = {.amount = {0, 0, 24}}}};
  const auto of_parent = [&](int64_t vision) {
    SetGuarantee(snapshot, "vision", kGpu, vision);
    return snapshot.queues[2].guaranteed[kGpu];
  };
  EXPECT_EQ(of_parent(20), 28);
  EXPECT_EQ(of_parent(4), 12);
  SetGuarantee(snapshot, "research", kGpu, 32);
  EXPECT_EQ(of_parent(20), 32);
  EXPECT_EQ(of_parent(30), 38);
  EXPECT_THROW(SetGuarantee(snapshot, "research", kGpu, 5), Error);
}

TEST(WhatIf, ParentsOfParentsFollowToo) {
  Snapshot snapshot;
  snapshot.resource_names = {"cpu", "memory", "gpu"};
  snapshot.queues = {{.name = "vision", .guaranteed = {.amount = {0, 0, 16}}, .parent = 1},
                     {.name = "research", .guaranteed = {.amount = {0, 0, 16}}, .parent = 2},
                     {.name = "company", .guaranteed = {.amount = {0, 0, 20}}}};
  const auto of_parents = [&](int64_t vision) {
    SetGuarantee(snapshot, "vision", kGpu, vision);
    return std::pair(snapshot.queues[1].guaranteed[kGpu], snapshot.queues[2].guaranteed[kGpu]);
  };
  EXPECT_EQ(of_parents(18), std::pair(int64_t{18}, int64_t{20})) << "the company has more";
  EXPECT_EQ(of_parents(24), std::pair(int64_t{24}, int64_t{24}));
  EXPECT_EQ(of_parents(8), std::pair(int64_t{8}, int64_t{8}));
  EXPECT_THROW(SetGuarantee(snapshot, "company", kGpu, 7), Error);
}

TEST(WhatIf, SuggestsTheNearestName) {
  Snapshot snapshot = OneNode();
  try {
    SetGuarantee(snapshot, "defalt", kGpu, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_STREQ(error.what(), "there is no queue 'defalt': did you mean 'default'?");
  }
}

}  // namespace
}  // namespace renzan::cluster::simulate
