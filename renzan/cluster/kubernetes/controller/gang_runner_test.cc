#include "renzan/cluster/kubernetes/controller/gang_runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/kubernetes/controller/job_facts.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster::kubernetes {
namespace {

class NoRequests : public Requests {
 public:
  void Run(std::vector<Request>) override {}
};

// A job of two workers in its third attempt, which another leader started on two nodes.
class Gang {
 public:
  explicit Gang(const char* phase) {
    for (const char* name : {"n0", "n1"})
      inventory_.Put({.name = name, .labels = {{kPoolLabel, "p"}}, .ready = true}, 0);
    const Json object = {
        {"metadata", {{"namespace", "ads"}, {"name", "job"}, {"uid", "u"}}},
        {"spec",
         {{"replicas", 2},
          {"retries", 1},
          {"template", {{"spec", {{"containers", Json::array()}}}}}}},
        {"status",
         {{"phase", phase},
          {"attempts", 3},
          {"placement", {{{"node", "n0"}, {"workers", 1}}, {{"node", "n1"}, {"workers", 1}}}},
          {"facts", {{"id", 1}}}}}};
    GangJob job = GangJobFrom(std::make_shared<const Json>(object));
    Job facts{.id = 1};
    Specify(job, inventory_, snapshot_, facts);
    runner_.Add(std::move(job), std::move(facts));
  }

  bool HasWorker(const Pod& pod) const { return runner_.IsWorker(pod); }
  void See(std::initializer_list<Pod> pods) {
    for (const Pod& pod : pods) pods_.Put(pod);
    runner_.Check(1);
  }
  const GangJobStatus& status() const { return runner_.live().at(1).object.status; }

 private:
  const ManualClock clock_;
  Snapshot snapshot_;
  Inventory inventory_{snapshot_};
  PodBook pods_;
  NoRequests requests_;
  GangRunner runner_{"replica", /*at_once=*/256, snapshot_, inventory_, pods_, requests_, clock_};
};

constexpr TimeMs kThen = 5 * kSecond;

Pod PodOfRank(int rank) {
  return {.ns = "ads",
          .name = fmt::format("job-2-{}", rank),
          .uid = fmt::format("p{}", rank),
          .node = fmt::format("n{}", rank),
          .job_uid = "u",
          .attempt = 2,
          .rank = rank,
          .running = true};
}
Pod Told(Pod pod) {
  pod.deleting = true;
  pod.told_at = kThen;
  return pod;
}
Pod Ended(Pod pod, int exit_code, TimeMs when) {
  pod.running = false;
  pod.ended = true;
  pod.exit_code = exit_code;
  pod.finished = when;
  return pod;
}
void ExpectFailure(const GangJobStatus& status) {
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.requeues, 0);
  EXPECT_THAT(status.message, ::testing::StartsWith("failed: worker 1 on n1 exited with 1"));
}

// What was requested of users' pods would affect other users' room and jobs.
TEST(GangRunner, PodsThatOnlyLookLikeWorkersAreNone) {
  const Gang gang("running");
  EXPECT_TRUE(gang.HasWorker(PodOfRank(1)));
  const auto with = [&](const std::function<void(Pod&)>& edit) {
    Pod pod = PodOfRank(1);
    edit(pod);
    return gang.HasWorker(pod);
  };
  EXPECT_TRUE(with([](Pod& pod) { pod.node = ""; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.ns = "vision"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.name = "large"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.node = "n0"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.job_uid = "v"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.attempt = 1; }));
  for (const int rank : {-1, 0, 2}) EXPECT_FALSE(with([&](Pod& pod) { pod.rank = rank; })) << rank;
}

// Workers that were told to stop and save their work exit with 75, in the same second as the one
// that failed, or earlier by their node's clock. The attempt must still count as a failure against
// the retries.
TEST(GangRunner, WhoFailedBeforeTheOthersWereToldSaysHowItEnded) {
  for (const TimeMs clock : {0, -1000, 1000}) {
    SCOPED_TRACE(clock);
    Gang gang("running");
    const Pod fails = Ended(PodOfRank(1), 1, kThen);
    gang.See({PodOfRank(0), fails});
    gang.See({Ended(Told(PodOfRank(0)), 75, kThen + clock), Told(fails)});
    ExpectFailure(gang.status());
  }
}

TEST(GangRunner, TheNextLeaderKnowsWhoFailedFirst) {
  Gang gang("stopping");
  gang.See({Ended(Told(PodOfRank(0)), 75, kThen), Ended(PodOfRank(1), 1, kThen)});
  ExpectFailure(gang.status());
}

// Later ends are consequences, whatever their status.
TEST(GangRunner, WhoFailedFirstIsKept) {
  Gang gang("running");
  const Pod fails = Ended(PodOfRank(1), 1, kThen);
  gang.See({PodOfRank(0), fails});
  gang.See({Ended(PodOfRank(0), 69, kThen - kSecond), fails});
  ExpectFailure(gang.status());
}

// Seen together, in the same second.
TEST(GangRunner, WhoAsksToBeRunAgainProbablyFailedAfterAnother) {
  Gang gang("running");
  gang.See({Ended(PodOfRank(0), 75, kThen), Ended(PodOfRank(1), 1, kThen)});
  ExpectFailure(gang.status());
}

// The next leader knows it from the status.
TEST(GangRunner, AGangThatFailsSoonAvoidsTheNodeOfTheWorkerThatFailed) {
  Gang gang("running");
  gang.See({Ended(PodOfRank(0), 75, kThen), Ended(PodOfRank(1), 1, kThen)});
  ExpectFailure(gang.status());
  EXPECT_THAT(gang.status().failed_on, ::testing::ElementsAre("n1"));
  GangJob job;
  job.status = gang.status();
  const Json object = {{"status", StatusObject(job, Json(), 0)}};
  EXPECT_EQ(GangJobFrom(std::make_shared<const Json>(object)).status.failed_on,
            gang.status().failed_on);
}

TEST(GangRunner, AWorkerThatItsNodeRefusedWasNotThere) {
  Gang gang("running");
  Pod refused = Ended(PodOfRank(1), 1, kThen);
  refused.refused = true;
  refused.finished.reset();
  gang.See({Ended(PodOfRank(0), 1, kThen), refused});
  EXPECT_EQ(gang.status().failures, 0);
  EXPECT_THAT(gang.status().message, ::testing::HasSubstr("worker 1 on n1"));
}

// Nobody saw what came first: a pod is being deleted, and therefore the other worker has lost its
// peer.
TEST(GangRunner, WhoFailsBecauseAnotherWasDeletedIsNoFailure) {
  Gang gang("running");
  gang.See({Ended(PodOfRank(0), 1, kThen + kSecond), Ended(Told(PodOfRank(1)), 75, kThen)});
  EXPECT_EQ(gang.status().failures, 0);
  EXPECT_EQ(gang.status().message, "back to the queue (pod job-2-1 is being deleted)");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
