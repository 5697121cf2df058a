#include "renzan/cluster/spec/snapshot_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// Every field has a value other than its default.
Snapshot Everything() {
  Snapshot snapshot;
  snapshot.now = 1'700'000'000'123;
  snapshot.resource_names = {"cpu", "memory", "gpu", "nic"};
  snapshot.topology_levels = {"zone", "rack"};
  snapshot.pools.push_back({.name = "spot",
                            .capacity = {{16'000, 65'536, 4, 1}},
                            .labels = {{"gpu_model", "a100"}},
                            .domains = {{"rack", 2}},
                            .spot = true,
                            .min_nodes = 1,
                            .max_nodes = 20,
                            .price_per_hour = 0.1 + 0.2,
                            .boot_ms = 180'000,
                            .idle_ms = 1,
                            .interruptions_per_hour = 1e-9});
  snapshot.nodes.push_back({.name = "spot-0",
                            .pool = 0,
                            .capacity = snapshot.pools[0].capacity,
                            .labels = {{"rack", "spot-rack-0"}, {"quote\"", "\xc3\xbc"}},
                            .state = NodeState::kDraining,
                            .until = 1'700'000'100'000,
                            .idle_since = 12,
                            .spot = true});
  snapshot.nodes[0].reason = "its health check failed";
  snapshot.nodes.push_back({.name = "mine"});
  snapshot.queues.push_back({.name = "q", .guaranteed = {{1, 2, 3}}});
  snapshot.queues[0].limit[kGpu] = 7;
  snapshot.queues.push_back({.name = "parent"});
  snapshot.queues[0].parent = 1;
  snapshot.queues[0].removed = true;
  snapshot.queues[0].fair_share = {.half_life = kHour, .used = {{0, 0.1}, {1, 1e9 / 3}}};
  snapshot.queues[0].rights = {.members = QueueMembers{{"ann"}, {"vision"}, {"ads"}},
                               .max_priority = 10,
                               .only_preemptible = true};
  snapshot.users.push_back(
      {.name = "ann",
       .max_gpus = 8,
       .quota_overrides = {{16, 99}, {}},
       .failing_on = {{.node = "mine", .jobs = 4, .since = 24, .latest = 25}}});
  snapshot.users.push_back({.name = "bob"});
  snapshot.worker_requests.push_back({.per_worker = {{500, 1, 2}},
                                      .required = {{"a", "b"}},
                                      .preferred = {{"c", "d"}},
                                      .topology_level = "rack",
                                      .topology_required = true,
                                      .excluded_nodes = {"mine"}});
  Job job{.id = int64_t{1} << 53 | 1, .user = 1};
  job.priority = -3;
  job.min_workers = 2;
  job.max_workers = 8;
  job.checkpoints = true;
  job.preemptible = false;
  job.quota_exempt = true;
  job.submitted = 5;
  job.grace_ms = 6;
  job.max_checkpoint_interval_ms = 60'000;
  job.state = JobState::kResizing;
  job.eligible_at = kNever;
  job.placement = {{0, 2}, {1, 1}};
  job.target = {{1, 4}};
  job.started = 7;
  job.last_resize = 8;
  job.last_checkpoint = 9;
  job.backfilled = true;
  job.restart_cost_ms = 10;
  job.checkpoint_cost_ms = 11;
  job.state_bytes = 12;
  job.run_time = {19, 20, 21, 22, 23};
  job.run_time_now = {24, 25, 26, 27, 28};
  job.expected_end = 13;
  job.preemptions = 14;
  job.stopping_for = 15;
  job.waiting_since = 16;
  job.attained_worker_ms = 17;
  job.reservation_yields = 18;
  job.held = "because";
  job.failed_on = {"mine", "spot-0"};
  snapshot.jobs = {{.id = 3}, job};
  snapshot.reservations = {{3, {{0, 1}}}};
  snapshot.budget_per_hour = 100.25;
  return snapshot;
}

TEST(SnapshotJson, RoundTripIsExact) {
  const Snapshot before = Everything();
  const std::string text = SnapshotToJson(before);
  const Snapshot after = SnapshotFromJson(text);
  EXPECT_EQ(SnapshotToJson(after), text);
  EXPECT_EQ(after.jobs[1].id, before.jobs[1].id);
  EXPECT_EQ(after.jobs[1].placement, before.jobs[1].placement);
  EXPECT_EQ(after.jobs[1].target, before.jobs[1].target);
  EXPECT_EQ(after.jobs[1].eligible_at, kNever);
  EXPECT_EQ(after.jobs[1].state, JobState::kResizing);
  EXPECT_EQ(after.jobs[1].last_checkpoint, 9);
  EXPECT_EQ(after.jobs[0].run_time_now, std::nullopt);
  EXPECT_EQ(after.jobs[1].run_time_now, before.jobs[1].run_time_now);
  EXPECT_EQ(after.jobs[0].last_checkpoint, std::nullopt);
  EXPECT_EQ(after.pools[0].price_per_hour, before.pools[0].price_per_hour);
  EXPECT_EQ(after.pools[0].domains, before.pools[0].domains);
  EXPECT_EQ(after.nodes[0].labels, before.nodes[0].labels);
  EXPECT_EQ(after.nodes[0].state, NodeState::kDraining);
  EXPECT_EQ(after.nodes[1].until, kNever);
  EXPECT_EQ(after.queues[0].limit, before.queues[0].limit);
  EXPECT_TRUE(after.queues[0].removed);
  EXPECT_EQ(after.queues[0].rights, before.queues[0].rights);
  EXPECT_EQ(after.queues[0].parent, 1);
  EXPECT_EQ(after.queues[0].fair_share, before.queues[0].fair_share);
  EXPECT_EQ(after.users[1].max_gpus, kUnlimited);
  EXPECT_EQ(after.users[0].quota_overrides[1].max_gpus, kUnlimited);
  EXPECT_EQ(after.users[0].failing_on, before.users[0].failing_on);
  EXPECT_EQ(after.worker_requests, before.worker_requests);
  EXPECT_EQ(after.reservations, before.reservations);
  EXPECT_EQ(after.budget_per_hour, 100.25);
}

TEST(SnapshotJson, IncludesEveryField) {
  // The round trip would not notice a field that Describe() omits, so count the keys.
  const Json json = Json::parse(SnapshotToJson(Everything()));
  EXPECT_EQ(json.size(), 11u);
  EXPECT_EQ(json["jobs"][1].size(), 34u);
  EXPECT_EQ(json["nodes"][0].size(), 9u);
  EXPECT_EQ(json["pools"][0].size(), 11u);
  EXPECT_EQ(json["queues"][0].size(), 9u);
  EXPECT_EQ(json["worker_requests"][0].size(), 6u);
  EXPECT_EQ(json["users"][0].size(), 4u);
  const Json defaults = Json::parse(SnapshotToJson([] {
    Snapshot snapshot = Everything();
    snapshot.jobs[1] = {.id = 4};
    return snapshot;
  }()));
  for (const auto& [key, value] : json["jobs"][1].items()) {
    if (key == "request" || key == "queue") continue;
    EXPECT_NE(value, defaults["jobs"][1][key]) << key;
  }
}

// Recordings from before these were added can be read.
TEST(SnapshotJson, WhatIsAbsentIsEmpty) {
  Json json = Json::parse(SnapshotToJson(Everything()));
  EXPECT_FALSE(json["jobs"][0].contains("failed_on"));
  json["jobs"][1].erase("failed_on");
  json["nodes"][0].erase("reason");
  EXPECT_FALSE(json["users"][1].contains("failing_on"));
  json["users"][0].erase("failing_on");
  json["worker_requests"][0].erase("excluded_nodes");
  const Snapshot after = SnapshotFromJson(json.dump());
  EXPECT_TRUE(after.jobs[1].failed_on.empty());
  EXPECT_EQ(after.nodes[0].reason, "");
  EXPECT_TRUE(after.users[0].failing_on.empty());
  EXPECT_TRUE(after.worker_requests[0].excluded_nodes.empty());
  json["jobs"][1]["failed_on"] = 3;
  EXPECT_THROW(SnapshotFromJson(json.dump()), Error);
}

// Recordings with what has been removed since can be read.
TEST(SnapshotJson, DroppedKeysAreReadOver) {
  Json json = Json::parse(SnapshotToJson(Everything()));
  EXPECT_FALSE(json["pools"][0].contains("boot_ahead"));
  json["pools"][0]["boot_ahead"] = 0.5;
  json["pools"][0]["expected_nodes"] = Json::array({1, 2});
  EXPECT_EQ(SnapshotToJson(SnapshotFromJson(json.dump())), SnapshotToJson(Everything()));
}

TEST(SnapshotJson, AnEmptySnapshotHasNoLimits) {
  const Snapshot after = SnapshotFromJson(SnapshotToJson(Snapshot()));
  EXPECT_EQ(after.budget_per_hour, INFINITY);
  EXPECT_EQ(after.resource_names.size(), 3u);
}

// The message of the kData error thrown on reading JSON after `change`.
std::string ErrorAfter(const std::function<void(Json&)>& change) {
  Json json = Json::parse(SnapshotToJson(Everything()));
  change(json);
  try {
    SnapshotFromJson(json.dump());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    return error.what();
  }
  return "no error";
}

TEST(SnapshotJson, ErrorsNameTheField) {
  const auto set = [](const char* pointer, Json value) {
    return ErrorAfter([&](Json& json) { json[Json::json_pointer(pointer)] = value; });
  };
  EXPECT_EQ(set("/now", "late"), "the snapshot's now is not a whole number of 64 bits");
  EXPECT_THAT(set("/now", 1.5), HasSubstr("now is not a whole number"));
  EXPECT_THAT(set("/now", uint64_t{1} << 63), HasSubstr("now is not a whole number"));
  EXPECT_THAT(set("/now", nullptr), HasSubstr("now is not a whole number"));
  EXPECT_THAT(set("/nodes", 3), HasSubstr("nodes is not a list"));
  EXPECT_THAT(set("/nodes/0", 3), HasSubstr("nodes[0] is not an object"));
  EXPECT_THAT(set("/nodes/0/spot", 1), HasSubstr("nodes[0].spot is not true or false"));
  EXPECT_THAT(set("/nodes/0/state", "lost"), HasSubstr("nodes[0].state is not a state"));
  EXPECT_THAT(set("/nodes/0/state", 1), HasSubstr("nodes[0].state is not a state"));
  EXPECT_THAT(set("/nodes/0/pool", 1), HasSubstr("nodes[0].pool is 1, but there are only 1"));
  EXPECT_THAT(set("/nodes/0/pool", int64_t{1} << 32), HasSubstr("of 32 bits"));
  EXPECT_THAT(set("/nodes/0/labels", Json::array()), HasSubstr("labels is not an object"));
  EXPECT_THAT(set("/nodes/0/labels/rack", 1), HasSubstr("nodes[0].labels.rack is not text"));
  EXPECT_THAT(set("/nodes/0/capacity", {1, 2}), HasSubstr("capacity is not a list of 8 amounts"));
  EXPECT_THAT(set("/nodes/0/capacity/0", -1), HasSubstr("has a negative amount"));
  EXPECT_THAT(set("/pools/0/min_nodes", 21), HasSubstr("pools[0].min_nodes"));
  EXPECT_THAT(set("/pools/0/domains/rack", 0), HasSubstr("pools[0].domains"));
  EXPECT_THAT(set("/jobs/0/id", int64_t{1} << 60), HasSubstr("jobs[1] is not sorted by id"));
  EXPECT_THAT(set("/jobs/0/request", -1), HasSubstr("jobs[0].request is -1"));
  EXPECT_THAT(set("/jobs/0/queue", 2), HasSubstr("jobs[0].queue is 2"));
  EXPECT_THAT(set("/jobs/0/user", 2), HasSubstr("jobs[0].user is 2"));
  EXPECT_THAT(set("/jobs/0/min_workers", 0), HasSubstr("jobs[0].min_workers"));
  EXPECT_THAT(set("/jobs/1/placement/0/node", 2), HasSubstr("jobs[1].placement[0].node is 2"));
  EXPECT_THAT(set("/jobs/1/placement/0/node", 1), HasSubstr("placement[1] is not sorted"));
  EXPECT_THAT(set("/queues/0/parent", 2), HasSubstr("queues[0].parent is 2, but there are only 2"));
  EXPECT_THAT(set("/queues/1/parent", 1), HasSubstr("queues[0].parent leads to too many parents"));
  EXPECT_THAT(set("/queues/0/fair_share/half_life_ms", 0),
              HasSubstr("queues[0].fair_share.half_life_ms is not above 0"));
  EXPECT_THAT(set("/queues/0/fair_share/used/1/user", 2),
              HasSubstr("queues[0].fair_share.used[1].user is 2, but there are only 2"));
  EXPECT_THAT(set("/queues/0/fair_share/used/1/user", 0), HasSubstr("used[1] is not sorted"));
  EXPECT_THAT(set("/queues/0/fair_share/used/1/seconds", -1), HasSubstr("is negative"));
  EXPECT_THAT(set("/jobs/1/target/0/workers", 0), HasSubstr("target[0].workers is below 1"));
  EXPECT_THAT(set("/resource_names/2", "nic"), HasSubstr("resource_names must be cpu, memory"));
  EXPECT_EQ(set("/extra", 1), "the snapshot has an unknown key 'extra' in its top level");
  EXPECT_THAT(set("/jobs/1/nice", 1), HasSubstr("an unknown key 'nice' in jobs[1]"));
  EXPECT_EQ(ErrorAfter([](Json& json) { json["jobs"][1].erase("target"); }),
            "the snapshot lacks jobs[1].target");
}

TEST(SnapshotJson, TextThatIsNotJson) {
  const std::string text = SnapshotToJson(Everything());
  EXPECT_THROW(SnapshotFromJson(""), Error);
  EXPECT_THROW(SnapshotFromJson("[]"), Error);
  EXPECT_THROW(SnapshotFromJson(text.substr(0, text.size() / 2)), Error);
  EXPECT_THROW(SnapshotFromJson(text + "{}"), Error);
  EXPECT_THROW(SnapshotFromJson("{\"now\": 1," + text.substr(1)), Error);
}

}  // namespace
}  // namespace renzan::cluster::spec
