#include "renzan/cluster/simulate/precedence.h"

#include "renzan/cluster/core/testing/random_snapshot.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster::simulate {
namespace {

class PrecedenceTest : public ScheduleTest {
 protected:
  // "" if it has none.
  std::string RightOf(JobId other, JobId job, const Decisions& decisions = {}) {
    const Precedence precedence(snapshot, decisions, {});
    return precedence.RightOf(*snapshot.Find(other), *snapshot.Find(job)).value_or("");
  }
  void MakeOverdue(JobId job) { snapshot.Find(job)->waiting_since = kNow - 30 * kHour; }
};

TEST_F(PrecedenceTest, IsInTheOrderOfTheQueue) {
  Nodes(1);
  const JobId first = Add({}), second = Add({}), urgent = Add({.priority = 1});
  EXPECT_EQ(RightOf(first, second), "submitted earlier");
  EXPECT_EQ(RightOf(second, first), "");
  EXPECT_EQ(RightOf(urgent, first), "of higher priority");
  EXPECT_EQ(RightOf(first, urgent), "");
  snapshot.Find(first)->attained_worker_ms = 2 * kHour;
  EXPECT_EQ(RightOf(second, first), "with less service");
  EXPECT_EQ(RightOf(first, second), "");
}

TEST_F(PrecedenceTest, OverdueJobsGoFirstUntilOneIsServed) {
  Nodes(1);
  const JobId early = Add({}), overdue = Add({}), longest = Add({});
  MakeOverdue(overdue);
  EXPECT_EQ(RightOf(overdue, early), "overdue");
  EXPECT_EQ(RightOf(early, overdue), "") << "it was submitted earlier, but considered later";
  MakeOverdue(longest);
  snapshot.Find(longest)->waiting_since -= kHour;
  EXPECT_EQ(RightOf(longest, overdue), "overdue");
  EXPECT_EQ(RightOf(overdue, longest, {.starts = {{overdue, {{0, 1}}}}}), "")
      << "the longest was considered before it";
  EXPECT_EQ(RightOf(early, overdue, {.starts = {{longest, {{0, 1}}}}}), "submitted earlier")
      << "once one is served, the others have their usual places";
}

TEST_F(PrecedenceTest, ThoseForWhomRoomWasMadeGoFirst) {
  Nodes(1);
  Add({.on = {{0, 1}}});
  const JobId waits = Add({.priority = 1}), served = Add({});
  snapshot.jobs[0].state = JobState::kStopping;
  snapshot.jobs[0].stopping_for = served;
  EXPECT_EQ(RightOf(served, waits), "with room made before");
  EXPECT_EQ(RightOf(waits, served), "");
}

TEST_F(PrecedenceTest, JobsWithinQuotaGoFirst) {
  Nodes(1);
  TwoQueues(8, 0);
  const JobId borrows = Add({.queue = 1, .priority = 9}), within = Add({.queue = 0});
  EXPECT_EQ(RightOf(within, borrows), "within its queue's quota");
  EXPECT_EQ(RightOf(borrows, within), "");
}

TEST_F(PrecedenceTest, UsersWhoHaveUsedLessGoFirstInTheirQueueOnly) {
  Nodes(1);
  snapshot.queues = {{.name = "a"}, {.name = "b"}};
  snapshot.queues[0].fair_share = {.half_life = kHour, .used = {{0, 1000}}};
  const JobId anns = Add({.user = 0}), others = Add({.queue = 1}), bobs = Add({.user = 1});
  EXPECT_EQ(RightOf(bobs, anns), "of a user who has used less of the queue lately");
  EXPECT_EQ(RightOf(anns, bobs), "");
  // Bob's job has the turn of ann's, which was submitted before the other queue's, and she has his.
  EXPECT_EQ(RightOf(bobs, others), "submitted earlier");
  EXPECT_EQ(RightOf(others, bobs), "");
  EXPECT_EQ(RightOf(others, anns), "submitted earlier");
  EXPECT_EQ(RightOf(anns, others), "");
}

// The order in which a cycle considered jobs is that of their rights. Without guarantees, since
// what queues use changes within a cycle, and without overdue jobs.
TEST(PrecedenceProperty, FollowsTheCycle) {
  int pairs = 0, exchanged = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Snapshot snapshot = RandomSnapshot(seed);
    for (Queue& queue : snapshot.queues) queue.guaranteed = {};
    for (Job& job : snapshot.jobs) job.waiting_since = snapshot.now;
    const Decisions decisions = Schedule(snapshot);
    const Precedence precedence(snapshot, decisions, {});
    for (size_t at = 0; at + 1 < decisions.waits.size(); ++at) {
      const Job& first = *snapshot.Find(decisions.waits[at].job);
      const Job& second = *snapshot.Find(decisions.waits[at + 1].job);
      ++pairs;
      exchanged +=
          first.queue != second.queue && first.id > second.id && first.priority == second.priority;
      EXPECT_TRUE(precedence.RightOf(first, second).has_value())
          << "seed " << seed << ", jobs " << first.id << " and " << second.id;
      EXPECT_EQ(precedence.RightOf(second, first), std::nullopt)
          << "seed " << seed << ", jobs " << second.id << " and " << first.id;
    }
  }
  EXPECT_GT(pairs, 1000);
  EXPECT_GT(exchanged, 100);
}

}  // namespace
}  // namespace renzan::cluster::simulate
