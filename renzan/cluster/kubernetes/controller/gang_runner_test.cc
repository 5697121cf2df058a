#include "renzan/cluster/kubernetes/controller/gang_runner.h"

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

// What was asked of users' pods decides about other users' room and jobs.
TEST(GangRunner, PodsThatOnlyLookLikeWorkersAreNone) {
  const ManualClock clock;
  Snapshot snapshot;
  Inventory inventory(snapshot);
  for (const char* name : {"n0", "n1"})
    inventory.Put({.name = name, .labels = {{kPoolLabel, "p"}}, .ready = true}, 0);
  PodBook pods;
  NoRequests requests;
  GangRunner runner("replica", /*at_once=*/256, snapshot, inventory, pods, requests, clock);

  const Json object = {
      {"metadata", {{"namespace", "ads"}, {"name", "job"}, {"uid", "u"}}},
      {"spec", {{"replicas", 2}, {"template", {{"spec", {{"containers", Json::array()}}}}}}},
      {"status",
       {{"phase", "running"},
        {"attempts", 3},
        {"placement", {{{"node", "n0"}, {"workers", 1}}, {{"node", "n1"}, {"workers", 1}}}},
        {"facts", {{"id", 1}}}}}};
  GangJob job = GangJobFrom(std::make_shared<const Json>(object));
  Job facts{.id = 1};
  Specify(job, inventory, snapshot, facts);
  runner.Add(std::move(job), std::move(facts));

  const Pod worker{.ns = "ads",
                   .name = "job-2-1",
                   .uid = "p",
                   .node = "n1",
                   .job_uid = "u",
                   .attempt = 2,
                   .rank = 1};
  EXPECT_TRUE(runner.IsWorker(worker));
  const auto with = [&](const std::function<void(Pod&)>& edit) {
    Pod pod = worker;
    edit(pod);
    return runner.IsWorker(pod);
  };
  EXPECT_TRUE(with([](Pod& pod) { pod.node = ""; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.ns = "vision"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.name = "large"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.node = "n0"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.job_uid = "v"; }));
  EXPECT_FALSE(with([](Pod& pod) { pod.attempt = 1; }));
  for (const int rank : {-1, 0, 2}) EXPECT_FALSE(with([&](Pod& pod) { pod.rank = rank; })) << rank;
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
