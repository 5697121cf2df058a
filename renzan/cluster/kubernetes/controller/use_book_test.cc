#include "renzan/cluster/kubernetes/controller/use_book.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

struct FairWorld : World {
  FairWorld() {
    cluster.AddNode("a", 8);
    cluster.Apply(Queues(), "fair", {{"fairShare", {{"halfLife", "1h"}}}});
  }
  void Submit(const char* ns, const char* name, int gpus, TimeMs runs) {
    Json spec = JobSpec(1, gpus);
    spec["queue"] = "fair";
    cluster.AddJob(ns, name, spec, runs);
  }
  std::string PhaseIn(const char* ns, const char* name) {
    return TextAt(*cluster.FindJob(ns, name), {"status", "phase"});
  }
  Json QueueStatus() { return At(cluster.Get(Queues(), "", "fair", ""), {"status"}); }
  static double UsedIn(const Snapshot& snapshot, const std::string& ns) {
    for (const UsedLately& used : snapshot.queues.at(0).fair_share->used)
      if (snapshot.users[used.user].name == ns) return used.seconds;
    return 0;
  }
  double Used(const std::string& ns) { return UsedIn(leader->controller.snapshot(), ns); }
};

TEST(KubernetesFairShare, NamespacesThatHaveUsedLessGoFirst) {
  FairWorld world;
  for (const char* name : {"one", "two", "three", "four"}) world.Submit("ads", name, 8, kMinute);
  world.Run(50 * kSecond);
  world.Submit("web", "later", 8, kMinute);
  world.Run(60 * kSecond);
  EXPECT_EQ(world.PhaseIn("ads", "two"), "pending");
  EXPECT_EQ(world.PhaseIn("web", "later"), "running");
}

TEST(KubernetesFairShare, TheNextLeaderAndClientsGoOnFromTheStatus) {
  FairWorld world;
  world.Submit("ads", "short", 4, 5 * kMinute);
  world.Submit("web", "long", 2, 24 * kHour);
  world.Run(10 * kMinute);
  EXPECT_NEAR(world.Used("ads"), 4 * 5 * 60, 100);
  EXPECT_NEAR(world.Used("web"), 2 * 10 * 60, 100);
  for (int leader = 0; leader < 2; ++leader) {
    const double before = world.Used("ads"), webs = world.Used("web");
    world.StartController();
    world.Run(5 * kSecond);
    EXPECT_NEAR(world.Used("web"), webs + 2 * 5, 5);
    world.Submit("ads", leader == 0 ? "next" : "last", 1, kHour);  // else it is nobody's user
    world.Run(5 * kSecond);
    EXPECT_NEAR(world.Used("ads"), before, 30);
    EXPECT_NEAR(FairWorld::UsedIn(world.SeenByClients().snapshot, "ads"), before, 30);
    EXPECT_NEAR(FairWorld::UsedIn(world.SeenByClients().snapshot, "web"), webs + 2 * 10, 5);
  }
  // A job that runs while nobody leads is counted by the next leader.
  const double webs = world.Used("web");
  world.leader.reset();
  world.clock.seconds += 600;
  world.StartController();
  world.Run(2 * kSecond);
  EXPECT_NEAR(world.Used("web"), webs * 0.89 + 2 * 600 * 0.944, 30) << "both have decayed";
}

// A node with GPUs, of which a namespace has used some.
struct Counted {
  Counted() {
    snapshot.nodes.push_back({.name = "a", .capacity = {{8000, 1024, 8}}});
    snapshot.queues.push_back({.name = "fair", .fair_share = FairShare{.half_life = kHour}});
    snapshot.users.push_back({.name = "ads"});
    snapshot.worker_requests.push_back({.per_worker = {{1000, 1, 2}}});
    snapshot.jobs.push_back({.id = 1, .state = JobState::kRunning, .placement = {{0, 1}}});
    book.Count(0, snapshot);
    book.Count(kMinute, snapshot);
    snapshot.jobs.clear();
  }
  double Used(TimeMs now) {
    const auto used = book.Of("fair", kHour, now);
    return used.contains("ads") ? used.at("ads") : 0;
  }

  Snapshot snapshot;
  UseBook book;
};

TEST(UseBook, GpusMayBeOutOfSightForAWhile) {
  Counted counted;
  const double used = counted.Used(kMinute);
  EXPECT_NEAR(used, 2 * 60, 2);
  counted.snapshot.nodes[0].capacity = {{8000, 1024, 0}};  // others' pods hold them
  counted.book.Count(2 * kMinute, counted.snapshot);
  EXPECT_EQ(counted.Used(2 * kMinute), 0) << "of CPUs";
  counted.snapshot.nodes[0].capacity = {{8000, 1024, 8}};
  counted.book.Count(3 * kMinute, counted.snapshot);
  EXPECT_EQ(counted.Used(kMinute), used);
}

TEST(UseBook, TimesInTheFutureStopNoAccount) {
  Counted counted;
  const Json status = {
      {"usedLately",
       {{"asOf", "2200-01-01T00:00:00.000000Z"}, {"of", "gpu"}, {"seconds", {{"ads", "100"}}}}}};
  UseBook next;
  next.Recover("fair", status);
  counted.snapshot.jobs.push_back({.id = 1, .state = JobState::kRunning, .placement = {{0, 1}}});
  next.Count(kMinute, counted.snapshot);
  next.Count(2 * kMinute, counted.snapshot);
  EXPECT_NEAR(next.Of("fair", kHour, 2 * kMinute).at("ads"), 100 * 0.99 + 2 * 60, 2);
}

TEST(KubernetesFairShare, StatusesAreWrittenOnceAMinuteAtMost) {
  FairWorld world;
  world.Submit("web", "long", 2, 24 * kHour);
  world.Run(20 * kSecond);
  std::set<std::string> versions;
  for (int second = 0; second < 300; ++second) {
    world.Run(kSecond);
    versions.insert(
        TextAt(world.cluster.Get(Queues(), "", "fair", ""), {"metadata", "resourceVersion"}));
  }
  EXPECT_GE(versions.size(), 4u);
  EXPECT_LE(versions.size(), 7u);
  world.cluster.Apply(Queues(), "fair", Json::object());
  world.Run(10 * kSecond);
  EXPECT_TRUE(At(world.QueueStatus(), {"usedLately"}).is_null());
  EXPECT_EQ(world.leader->controller.snapshot().queues.at(0).fair_share, std::nullopt);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
