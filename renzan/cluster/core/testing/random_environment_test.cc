#include "renzan/cluster/core/testing/random_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/order/queue_tree.h"
#include "renzan/cluster/core/place/sites.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Starts whole gangs on the first node that is large enough, ignoring running jobs.
Decisions IgnoreRunningJobs(const Snapshot& snapshot) {
  Decisions decisions;
  std::vector<Resources> free;
  for (const Node& node : snapshot.nodes)
    free.push_back(node.state == NodeState::kReady ? node.capacity : Resources{});
  for (const Job& job : snapshot.jobs) {
    if (job.state != JobState::kPending) continue;
    const WorkerRequest& request = snapshot.worker_requests[job.request];
    int node = 0, nodes = static_cast<int>(free.size());
    while (node < nodes &&
           (!Matches(snapshot.nodes[node], request) ||
            WorkersThatFit(free[node], request.per_worker, job.min_workers) < job.min_workers))
      ++node;
    const bool may = node < nodes && job.eligible_at <= snapshot.now && job.user == 0;
    if (!may) {
      decisions.waits.push_back({job.id, WaitReason::kUserCap});
      continue;
    }
    free[node] -= request.per_worker * job.min_workers;
    decisions.starts.push_back({job.id, {{node, job.min_workers}}});
  }
  return decisions;
}

TEST(RandomSnapshot, IsValidAndTheSameForASeed) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Snapshot snapshot = RandomSnapshot(seed);
    EXPECT_THAT(ValidateSnapshot(snapshot), IsEmpty()) << "seed " << seed;
    const Snapshot again = RandomSnapshot(seed);
    ASSERT_EQ(snapshot.jobs.size(), again.jobs.size());
    for (size_t job = 0; job < again.jobs.size(); ++job)
      EXPECT_EQ(snapshot.jobs[job].placement, again.jobs[job].placement);
  }
}

TEST(RandomSnapshot, HasTreesOfAnyHeightWithBranchesOfUnequalLength) {
  std::map<int, int> by_depth;  // of the deepest queue
  int unequal = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Snapshot snapshot = RandomSnapshot(seed);
    std::map<int, std::set<int>> depths;  // of queues with jobs, by the top of their tree
    for (const Job& job : snapshot.jobs)
      depths[TopOf(snapshot, job.queue)].insert(DepthOf(snapshot, job.queue));
    int deepest = 0;
    for (const auto& [top, its] : depths) deepest = std::max(deepest, *its.rbegin());
    ++by_depth[deepest];
    unequal += std::ranges::any_of(depths, [](const auto& its) { return its.second.size() > 1; });
  }
  for (const int depth : {1, 2, 3}) EXPECT_GT(by_depth[depth], 50) << depth;
  EXPECT_GT(unequal, 50);
}

TEST(RandomEnvironment, ReportsInvalidDecisions) {
  std::string wrong;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomEnvironment environment(seed, IgnoreRunningJobs);
    for (int step = 0; step < 20; ++step) environment.Disturb();
    for (const std::string& violation : environment.violations()) wrong += violation + "\n";
  }
  EXPECT_THAT(wrong, HasSubstr("used after this cycle"));
}

TEST(RandomEnvironment, ReportsJobsThatNeverEnd) {
  const auto nothing = [](const Snapshot& snapshot) {
    Decisions decisions;
    for (const Job& job : snapshot.jobs) decisions.waits.push_back({job.id, WaitReason::kUserCap});
    return decisions;
  };
  int found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomEnvironment environment(seed, nothing);
    environment.Finish();
    found += !environment.violations().empty();
  }
  EXPECT_GT(found, 10);  // in the others no job can ever run
}

TEST(RandomEnvironment, ReportsDifferentDecisionsForTheSameSnapshot) {
  int cycles = 0;
  RandomEnvironment environment(0, [&](const Snapshot& snapshot) {
    Decisions decisions;
    for (const Job& job : snapshot.jobs) decisions.waits.push_back({job.id, WaitReason::kUserCap});
    decisions.look_again = snapshot.now + ++cycles;
    return decisions;
  });
  environment.Disturb();
  EXPECT_THAT(environment.violations(), Contains(HasSubstr("gives other decisions")));
}

}  // namespace
}  // namespace renzan::cluster
