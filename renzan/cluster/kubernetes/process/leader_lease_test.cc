#include "renzan/cluster/kubernetes/process/leader_lease.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/base/philox.h"
#include "renzan/base/random_testing.h"
#include "renzan/cluster/kubernetes/controller/fake_connection_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/process/fenced_api.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

LeaseOptions As(const std::string& identity) { return {.identity = identity}; }

struct LeaderLeaseTest : ::testing::Test {
  void Pass(double seconds) { clock.seconds += seconds; }
  ManualClock clock;
  FakeCluster server{1, clock};
  Network network;
  FakeConnection cluster{1, server, network};
};

TEST_F(LeaderLeaseTest, TheFirstLeadsAndTheOtherWaitsUntilItIsNotRenewed) {
  LeaderLease a(As("a"), cluster, clock), b(As("b"), cluster, clock);
  a.Try();
  b.Try();
  EXPECT_TRUE(a.leads());
  EXPECT_FALSE(b.leads());
  EXPECT_EQ(b.holder(), "a");
  for (int i = 0; i < 30; ++i) {
    Pass(1);
    a.Try();
    b.Try();
  }
  EXPECT_TRUE(a.leads());
  EXPECT_FALSE(b.leads());
  // The holder is killed.
  double waited = 0;
  for (; !b.leads() && waited < 60; ++waited) {
    Pass(1);
    b.Try();
    EXPECT_FALSE(a.leads() && b.leads());
  }
  EXPECT_LE(waited, 16);
  EXPECT_FALSE(a.leads());
  a.Try();
  EXPECT_FALSE(a.leads());
}

TEST_F(LeaderLeaseTest, ReleasedItGoesToTheNextAtOnce) {
  LeaderLease a(As("a"), cluster, clock), b(As("b"), cluster, clock);
  a.Try();
  b.Try();
  a.Release();
  EXPECT_FALSE(a.leads());
  b.Try();
  EXPECT_TRUE(b.leads());
  // A Lease of another replica is not released.
  a.Release();
  b.Try();
  EXPECT_TRUE(b.leads());
}

TEST_F(LeaderLeaseTest, ItIsReleasedEvenIfNoAnswerSaidThatItWasTaken) {
  const auto holder = [&] {
    const LeaseOptions lease;
    return TextAt(server.Get(Leases(), lease.ns, lease.name, ""), {"spec", "holderIdentity"});
  };
  LeaderLease first(As("first"), cluster, clock);
  first.Try();
  first.Release();
  int requests = 0, taken = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string name = fmt::format("a{}", i);
    LeaderLease a(As(name), cluster, clock);
    // It reads the Lease, and the answer to its write is lost.
    requests = 0;
    cluster.meanwhile = [&] { network.no_answer = ++requests == 2 ? 1 : 0; };
    EXPECT_THROW(a.Try(), ApiError);
    EXPECT_FALSE(a.leads());
    taken += holder() == name ? 1 : 0;
    a.Release();
    EXPECT_EQ(holder(), "");
  }
  EXPECT_GT(taken, 0);
}

TEST_F(LeaderLeaseTest, WithoutAnswersItStopsWriting) {
  LeaderLease a(As("a"), cluster, clock);
  a.Try();
  network.no_answer = 1;
  Pass(9);
  EXPECT_THROW(a.Try(), ApiError);
  EXPECT_TRUE(a.leads());
  Pass(1);
  EXPECT_FALSE(a.leads());
  network.no_answer = 0;
  a.Try();
  EXPECT_TRUE(a.leads());
}

TEST_F(LeaderLeaseTest, TwoNeverLeadAtTheSameTime) {
  const auto [first, last] = TestSeeds(99);
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    ManualClock time;
    FakeCluster api_server(seed, time);
    const Network bad{.no_answer = 0.2};
    FakeConnection connection(seed, api_server, bad);
    std::vector<std::unique_ptr<LeaderLease>> replicas;
    for (const char* name : {"a", "b", "c"})
      replicas.push_back(std::make_unique<LeaderLease>(As(name), connection, time));
    uint64_t draws = 0;
    const auto draw = [&](uint32_t below) { return Philox::Draw(seed, draws++, 4)[0] % below; };
    int asleep = -1, led = 0;
    for (int turn = 0; turn < 2000; ++turn) {
      time.seconds += draw(500) / 1000.0;
      api_server.Play();
      // One of them is paused for a while without knowing it.
      if (draw(40) == 0) asleep = asleep < 0 ? static_cast<int>(draw(3)) : -1;
      const auto each = static_cast<int>(draw(3));
      if (each != asleep) try {
          replicas[each]->Try();
        } catch (const ApiError&) {
        }
      int leaders = 0;
      for (const auto& replica : replicas) leaders += replica->leads() ? 1 : 0;
      ASSERT_LE(leaders, 1) << "turn " << turn;
      led += leaders;
    }
    EXPECT_GT(led, 1000);
  }
}

TEST_F(LeaderLeaseTest, AFencedApiReadsButDoesNotWrite) {
  bool may_write = true;
  const auto api =
      MakeFencedApi(std::make_unique<FakeCluster>(1, clock), [&] { return may_write; });
  api->Create(Leases(), "ns", {{"metadata", {{"name", "x"}}}});
  may_write = false;
  EXPECT_NO_THROW(api->Get(Leases(), "ns", "x"));
  try {
    api->Create(Leases(), "ns", {{"metadata", {{"name", "y"}}}});
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_TRUE(error.is_stopped());
    EXPECT_FALSE(error.maybe_executed());
  }
  EXPECT_THROW(api->Delete(Leases(), "ns", "x", "", std::nullopt), ApiError);
  EXPECT_THROW(api->Bind("ns", "x", "", "n"), ApiError);
  EXPECT_THROW(api->MergePatch(Leases(), "ns", "x", Json::object()), ApiError);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
