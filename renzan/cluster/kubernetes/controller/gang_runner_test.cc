#include "renzan/cluster/kubernetes/controller/gang_runner.h"

#include <fmt/format.h>
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

// A job of two workers, which its third attempt has on two nodes.
class GangRunnerTest : public ::testing::Test {
 protected:
  GangRunnerTest() {
    for (const char* name : {"n0", "n1"})
      inventory_.Put({.name = name, .labels = {{kPoolLabel, "p"}}, .ready = true}, 0);
    const Json object = {
        {"metadata", {{"namespace", "ads"}, {"name", "job"}, {"uid", "u"}}},
        {"spec",
         {{"replicas", 2},
          {"retries", 1},
          {"template", {{"spec", {{"containers", Json::array()}}}}}}},
        {"status",
         {{"phase", "running"},
          {"attempts", 3},
          {"placement", {{{"node", "n0"}, {"workers", 1}}, {{"node", "n1"}, {"workers", 1}}}},
          {"facts", {{"id", 1}}}}}};
    GangJob job = GangJobFrom(std::make_shared<const Json>(object));
    Job facts{.id = 1};
    Specify(job, inventory_, snapshot_, facts);
    runner_.Add(std::move(job), std::move(facts));
  }

  static Pod Worker(int rank) {
    return {.ns = "ads",
            .name = fmt::format("job-2-{}", rank),
            .uid = fmt::format("p{}", rank),
            .node = fmt::format("n{}", rank),
            .job_uid = "u",
            .attempt = 2,
            .rank = rank};
  }
  void See(std::initializer_list<Pod> pods) {
    for (const Pod& pod : pods) pods_.Put(pod);
    runner_.Check(1);
  }

  const ManualClock clock_;
  Snapshot snapshot_;
  Inventory inventory_{snapshot_};
  PodBook pods_;
  NoRequests requests_;
  GangRunner runner_{"replica", /*at_once=*/256, snapshot_, inventory_, pods_, requests_, clock_};
};

// What was asked of users' pods decides about other users' room and jobs.
TEST_F(GangRunnerTest, PodsThatOnlyLookLikeWorkersAreNone) {
  EXPECT_TRUE(runner_.IsWorker(Worker(1)));
  const auto with = [&](const std::function<void(Pod&)>& edit) {
    Pod pod = Worker(1);
    edit(pod);
    return runner_.IsWorker(pod);
  };
  EXPECT_TRUE(with([](Pod& pod) { pod.node = ""; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.ns = "vision"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.name = "large"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.node = "n0"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.job_uid = "v"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.attempt = 1; }));
  for (const int rank : {-1, 0, 2}) EXPECT_FALSE(with([&](Pod& pod) { pod.rank = rank; })) << rank;
}

// The others are told to save their work, and exit with 75 in the same second: that does not make a
// failure one that retries do not count.
TEST_F(GangRunnerTest, WhoFailedBeforeTheOthersWereToldSaysHowItEnded) {
  constexpr TimeMs kThen = 5 * kSecond;
  Pod saves = Worker(0), fails = Worker(1);
  saves.running = true;
  fails.ended = true;
  fails.exit_code = 1;
  fails.finished = kThen;
  See({saves, fails});
  for (Pod* pod : {&saves, &fails}) {
    pod->deleting = true;
    pod->told_at = kThen;
  }
  saves.running = false;
  saves.ended = true;
  saves.exit_code = 75;
  saves.finished = kThen;
  See({saves, fails});
  const GangJobStatus& status = runner_.live().at(1).object.status;
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(status.requeues, 0);
  EXPECT_NE(status.message.find("worker 1 on n1 exited with 1"), std::string::npos)
      << status.message;
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
