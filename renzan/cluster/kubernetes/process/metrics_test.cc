#include "renzan/cluster/kubernetes/process/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/process/prometheus_testing.h"
#include "renzan/cluster/kubernetes/process/prometheus_text.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

Json FiveGpus() {
  return {{"template",
           {{"spec",
             {{"containers",
               {{{"name", "main"},
                 {"image", "x"},
                 {"resources", {{"limits", {{"nvidia.com/gpu", "5"}}}}}}}}}}}}};
}

void ShowAll(Controller& controller, const FakeCluster& cluster) {
  for (const Source source : kAllSources)
    controller.Take(source, {WatchChange::Type::kSynced,
                             std::make_shared<const Json>(cluster.ListNow(source))});
}

TEST(Metrics, TellWhatTheLeaderDoes) {
  ManualClock clock;
  FakeCluster cluster(1, clock);
  cluster.AddNode("a", 8);
  for (const char* name : {"one", "two"}) cluster.AddJob("ads", name, FiveGpus(), kMinute);
  const auto requests = MakeSequentialRequests(cluster);
  std::vector<int64_t> cycles;
  Controller controller(
      {.identity = "me",
       .on_cycle = [&](const record::CycleView& cycle) { cycles.push_back(cycle.number); }},
      cluster, *requests, clock);
  clock.seconds += 4;
  ShowAll(controller, cluster);
  controller.Turn();
  EXPECT_THAT(cycles, testing::ElementsAre(1));
  clock.seconds += 10;
  controller.Turn();
  Histogram delays({0.1, 1});
  delays.Observe(0.5);
  ApiCounts sent;
  sent.Count("update", "2xx", 0.02);
  sent.Count("update", "409", 0.02);
  const std::string text =
      MetricsOfLeader({controller,
                       {{"pods", {.lists = 1, .events = 7, .last_seconds = 100}}},
                       delays,
                       {.taken = 3, .kept = 2, .bytes = 1234, .lost = 1},
                       103},
                      sent.values());
  const ParsedMetrics metrics(text);
  const auto expect = [&](const char* series, double value) {
    EXPECT_THAT(metrics.Of(series), Optional(value)) << series;
  };
  expect("renzan_leads", 1);
  expect("renzan_jobs{state=\"running\"}", 1);
  expect("renzan_jobs{state=\"pending\"}", 1);
  expect("renzan_waiting_jobs{queue=\"default\",reason=\"resources\"}", 1);
  expect("renzan_longest_wait_seconds{gpus=\"2-7\"}", 14);
  expect("renzan_longest_wait_seconds{gpus=\"16+\"}", 0);
  expect("renzan_wait_seconds_count{gpus=\"2-7\"}", 1);
  expect("renzan_wait_seconds_sum{gpus=\"2-7\"}", 4);
  expect("renzan_wait_seconds_bucket{gpus=\"2-7\",le=\"1\"}", 0);
  expect("renzan_wait_seconds_bucket{gpus=\"2-7\",le=\"5\"}", 1);
  expect("renzan_cycle_duration_seconds_count", 2);
  expect("renzan_decisions_total{decision=\"start\"}", 1);
  expect("renzan_decisions_total{decision=\"scale_out\"}", 0);
  expect("renzan_stops_total{reason=\"node_leaving\"}", 0);
  expect("renzan_gpus", 8);
  expect("renzan_gpu_seconds_total{queue=\"default\"}", 50);
  expect("renzan_watch_events_total{kind=\"pods\"}", 7);
  expect("renzan_watch_silence_seconds{kind=\"pods\"}", 3);
  expect("renzan_change_delay_seconds_bucket{le=\"1\"}", 1);
  expect("renzan_recorded_cycles", 2);
  expect("renzan_unrecorded_cycles_total", 1);
  expect("renzan_api_requests_total{verb=\"update\",code=\"409\"}", 1);
  expect("renzan_api_request_duration_seconds_count{verb=\"update\"}", 2);

  const ParsedMetrics follower(MetricsOfFollower(sent.values()));
  EXPECT_THAT(follower.Of("renzan_leads"), Optional(0.0));
  EXPECT_THAT(follower.Of("renzan_api_requests_total{verb=\"update\",code=\"2xx\"}"),
              Optional(1.0));
}

TEST(Metrics, AttemptsByHowTheyEnded) {
  World world;
  world.cluster.AddNode("a", 8);
  world.cluster.AddJob("ads", "good", FiveGpus(), kSecond);
  world.cluster.AddJob("ads", "bad", FiveGpus(), kSecond, /*failures=*/1);
  world.Run(100 * kSecond);
  EXPECT_THAT(world.leader->controller.attempt_ends(),
              testing::UnorderedElementsAre(testing::Pair("done", 1), testing::Pair("failed", 1)));
}

TEST(ControllerCounts, PricedNodesCostUntilTheyAreGone) {
  Snapshot snapshot;
  snapshot.pools = {{.name = "own"}, {.name = "spot", .price_per_hour = 3}};
  snapshot.nodes = {{.name = "a", .pool = 0},
                    {.name = "b", .pool = 1},
                    {.name = "c", .pool = 1, .state = NodeState::kBooting},
                    {.name = "d", .pool = 1, .state = NodeState::kGone},
                    {.name = "e", .pool = -1}};
  ControllerCounts counts;
  counts.CountUse(snapshot, kHour / 2);
  counts.CountUse(snapshot, -kHour);
  EXPECT_THAT(counts.cost(), testing::ElementsAre(testing::Pair(1, testing::DoubleEq(3))));
}

TEST(ControllerCounts, ClassesOfSizes) {
  Snapshot snapshot;
  const auto class_of = [&](int64_t gpus, int workers) {
    snapshot.worker_requests = {{.per_worker = {{0, 0, gpus}}}};
    return std::string(
        kSizeClasses[SizeClassOf(snapshot, {.min_workers = workers, .max_workers = 100})]);
  };
  EXPECT_EQ(class_of(0, 9), "0");
  EXPECT_EQ(class_of(1, 1), "1");
  EXPECT_EQ(class_of(1, 2), "2-7");
  EXPECT_EQ(class_of(7, 1), "2-7");
  EXPECT_EQ(class_of(8, 1), "8-15");
  EXPECT_EQ(class_of(5, 3), "8-15");
  EXPECT_EQ(class_of(8, 2), "16+");
}

TEST(CountedApi, CountsByVerbAndAnswer) {
  ManualClock clock;
  ApiCounts counts;
  FakeCluster cluster(1, clock);
  Network network;
  const ApiFactory factory = MakeCountedApis(
      [&](std::stop_token) { return std::make_unique<FakeConnection>(1, cluster, network); },
      counts, clock);
  const auto api = factory({});
  cluster.AddNode("a", 8);
  api->List(KindOf(Source::kNodes), "", {});
  EXPECT_THROW(api->Get(KindOf(Source::kNodes), "", "none", ""), ApiError);
  network.is_down = true;
  EXPECT_THROW(api->Get(KindOf(Source::kNodes), "", "a", ""), ApiError);
  using Key = std::pair<std::string, std::string>;
  EXPECT_THAT(counts.values().requests, testing::ElementsAre(testing::Pair(Key("get", "404"), 1),
                                                             testing::Pair(Key("get", "none"), 1),
                                                             testing::Pair(Key("list", "2xx"), 1)));
}

TEST(PrometheusText, LabelsAreEscaped) {
  PrometheusText text;
  text.Family("renzan_x", "gauge", "Of x.");
  text.Sample({{"queue", "a\"b\\c\nd{}"}, {"of", ""}}, 1.5);
  const std::string written = text.Take();
  EXPECT_THAT(written, HasSubstr("renzan_x{queue=\"a\\\"b\\\\c\\nd{}\",of=\"\"} 1.5\n"));
  const ParsedMetrics metrics(written);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
