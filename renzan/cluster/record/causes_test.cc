#include "renzan/cluster/record/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "renzan/cluster/core/testing/schedule_testing.h"
#include "renzan/cluster/record/decision_log.h"
#include "renzan/cluster/record/record_testing.h"

namespace renzan::cluster::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

bool Always(const Wait&) { return true; }

std::vector<Json> AllOf(const Cycle& cycle) {
  return WithView(cycle, [](const CycleView& view) { return DecisionsWithCauses(view, Always); });
}

class CausesTest : public ScheduleTest {
 protected:
  // All decisions about the job, in order.
  std::vector<Json> About(JobId job) {
    if (!cycle_) cycle_ = CycleOn(snapshot, 17);
    std::vector<Json> about;
    for (Json& decision : AllOf(*cycle_))
      if (decision.contains("job") && decision["job"]["id"] == job)
        about.push_back(std::move(decision));
    return about;
  }
  Json The(JobId job) {
    const std::vector<Json> about = About(job);
    EXPECT_EQ(about.size(), 1u);
    return about.empty() ? Json() : about[0];
  }

  std::optional<Cycle> cycle_;
};

TEST_F(CausesTest, AStartSaysWhereAndWhoItIs) {
  Nodes(1);
  const JobId job = Add({.priority = 3, .workers = 2, .gpus = 2});
  snapshot.jobs[0].waiting_since = kNow - kMinute;
  const Json start = The(job);
  EXPECT_EQ(start["time"], "1970-02-11T16:00:00.000Z");
  EXPECT_EQ(start["cycle"], 17);
  EXPECT_EQ(start["decision"], "start");
  EXPECT_EQ(start["job"], Json({{"namespace", "a"}, {"name", "1"}, {"id", 1}}));
  EXPECT_EQ(start["nodes"], Json::array({{{"node", "n0"}, {"workers", 2}}}));
  EXPECT_EQ(start["cause"]["reason"], "fits");
  EXPECT_EQ(start["cause"]["priority"], 3);
  EXPECT_EQ(start["cause"]["waited_ms"], kMinute);
  EXPECT_EQ(start["cause"]["queue"]["name"], "default");
  EXPECT_EQ(start["cause"]["queue"]["limit_gpus"], nullptr);
  EXPECT_EQ(CauseText(start), "fits; waited 1m00s");
}

TEST_F(CausesTest, APreemptionSaysForWhom) {
  Nodes(1);
  const JobId low = Add({.workers = 8, .on = {{0, 8}}});
  const JobId high = Add({.priority = 5, .workers = 8});
  const Json stop = The(low);
  EXPECT_EQ(stop["decision"], "stop");
  EXPECT_EQ(stop["cause"]["reason"], "preempted");
  EXPECT_EQ(stop["cause"]["on_behalf_of"]["id"], high);
  EXPECT_EQ(stop["cause"]["on_behalf_of"]["priority"], 5);
  EXPECT_EQ(stop["cause"]["queue"]["used_gpus"], 8);
  EXPECT_EQ(CauseText(stop), "preempted for a/2 (2), priority 5 over 0");
  const Json wait = The(high);
  EXPECT_EQ(wait["decision"], "wait");
  EXPECT_EQ(wait["cause"]["reason"], "pipelined");
  EXPECT_FALSE(wait.contains("nodes"));
}

TEST_F(CausesTest, AReclaimSaysWhoseQuota) {
  Nodes(1);
  TwoQueues(8, 0);
  const JobId borrower = Add({.queue = 1, .workers = 8, .on = {{0, 8}}});
  Add({.queue = 0, .workers = 8});
  const Json stop = The(borrower);
  EXPECT_EQ(stop["cause"]["reason"], "reclaimed");
  EXPECT_EQ(stop["cause"]["on_behalf_of"]["queue"]["guaranteed_gpus"], 8);
  EXPECT_THAT(CauseText(stop), HasSubstr("whose queue a uses 0 of 8 guaranteed GPUs"));
}

TEST_F(CausesTest, ALeavingNodeIsNamed) {
  Nodes(1);
  snapshot.nodes[0].state = NodeState::kDraining;
  snapshot.nodes[0].until = kNow + 2 * kMinute;
  const JobId job = Add({.workers = 2, .on = {{0, 2}}});
  const Json stop = The(job);
  EXPECT_EQ(stop["decision"], "stop");
  EXPECT_EQ(stop["cause"]["reason"], "node_leaving");
  EXPECT_EQ(stop["cause"]["leaving"][0]["node"], "n0");
  EXPECT_EQ(CauseText(stop), "node leaving, n0 at 1970-02-11T16:02:00.000Z");
  Nodes(1);  // to which it can move
  cycle_.reset();
  const Json move = The(job);
  EXPECT_EQ(move["decision"], "resize");
  EXPECT_EQ(move["nodes"], Json::array({{{"node", "n1"}, {"workers", 2}}}));
  EXPECT_EQ(move["cause"]["reason"], "move");
  EXPECT_EQ(CauseText(move),
            "move from 2 to 2 workers; node leaving, n0 at 1970-02-11T16:02:00.000Z");
}

TEST_F(CausesTest, AReturnedNodeIsNamed) {
  Nodes(2);
  snapshot.pools = {{.name = "spot", .max_nodes = 2, .price_per_hour = 2.5}};
  snapshot.nodes[1].pool = 0;
  snapshot.nodes[1].idle_since = kNow - kMinute;
  cycle_ = CycleOn(snapshot, 17);
  cycle_->decisions.scale_in = {{.node = 1}};
  const std::vector<Json> all = AllOf(*cycle_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["decision"], "scale_in");
  EXPECT_EQ(all[0]["pool"], "spot");
  EXPECT_EQ(all[0]["nodes"], Json::array({{{"node", "n1"}}}));
  EXPECT_EQ(all[0]["cause"],
            Json({{"reason", "idle"}, {"idle_ms", kMinute}, {"price_per_hour", 2.5}}));
}

TEST_F(CausesTest, NamesMayBeMissing) {
  Nodes(1);
  Add({});
  cycle_ = CycleOn(snapshot);
  cycle_->names.clear();
  EXPECT_EQ(The(1)["job"], Json({{"id", 1}}));
  EXPECT_EQ(JobText(The(1)["job"]), "job 1");
}

TEST(Causes, EveryDecisionOfRandomCyclesHasACauseAndIsALineOfJson) {
  std::map<std::string, int> kinds;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Cycle cycle = RandomCycle(seed);
    for (auto& [id, name] : cycle.names) name = {"n\"s", "line\nbreak \xff"};
    const Decisions& decisions = cycle.decisions;
    size_t expected = decisions.starts.size() + decisions.stops.size() + decisions.resizes.size() +
                      decisions.checkpoints.size() + decisions.scale_out.size() +
                      decisions.scale_in.size() + decisions.waits.size();
    for (const Json& decision : AllOf(cycle)) {
      const std::string kind = decision["decision"];
      ++kinds[kind];
      if (kind != "reserve" && kind != "release") --expected;
      EXPECT_NE(decision["cause"]["reason"].get<std::string>(), "");
      EXPECT_NE(CauseText(decision), "");
      const std::string line = LineOf(decision);
      EXPECT_EQ(line.find('\n'), line.npos);
      EXPECT_TRUE(Json::accept(line)) << line;
    }
    EXPECT_EQ(expected, 0u) << "seed " << seed;
  }
  for (const char* kind : {"start", "stop", "resize", "checkpoint", "reserve", "scale_out", "wait"})
    EXPECT_GT(kinds[kind], 0) << kind;
}

std::vector<std::string> KindsOf(const std::string& lines) {
  std::vector<std::string> kinds;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);)
    kinds.push_back(Json::parse(line)["decision"]);
  return kinds;
}

class DecisionLogTest : public ScheduleTest {
 protected:
  std::vector<std::string> Kinds() {
    return KindsOf(
        WithView(CycleOn(snapshot), [this](const CycleView& view) { return log_.Lines(view); }));
  }
  DecisionLog log_;
};

TEST_F(DecisionLogTest, TellsWaitingOnceForEachReason) {
  Nodes(1);
  Add({.workers = 8, .on = {{0, 8}}});
  Add({.workers = 8});
  EXPECT_THAT(Kinds(), ElementsAre("wait"));
  EXPECT_THAT(Kinds(), ElementsAre());
  snapshot.jobs[1].eligible_at = kNow + kMinute;
  EXPECT_THAT(Kinds(), ElementsAre("wait"));
  EXPECT_THAT(Kinds(), ElementsAre());
  snapshot.jobs[1].eligible_at = 0;
  snapshot.jobs.erase(snapshot.jobs.begin());
  EXPECT_THAT(Kinds(), ElementsAre("start"));
}

}  // namespace
}  // namespace renzan::cluster::record
