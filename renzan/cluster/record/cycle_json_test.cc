#include "renzan/cluster/record/cycle_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/record/record_testing.h"
#include "renzan/cluster/record/replay.h"

namespace renzan::cluster::record {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr uint64_t kSeeds = 150;

TEST(CycleJson, RoundTripIsExactAndDecidesTheSame) {
  int64_t decided = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Cycle before = RandomCycle(seed);
    const std::string text = CycleToJson(before);
    const Cycle after = CycleFromJson(text);
    EXPECT_EQ(CycleToJson(after), text) << "seed " << seed;
    EXPECT_EQ(DifferenceOnReplay(after), "") << "seed " << seed;
    decided += Decides(before.snapshot, before.decisions) ? 1 : 0;
  }
  EXPECT_GT(decided, static_cast<int64_t>(kSeeds) / 2);
}

TEST(CycleJson, OptionsAreKept) {
  ScheduleOptions options;
  options.min_between_resizes_ms = 1;
  options.max_checkpoint_interval_ms = 2;
  options.max_yields_to_backfill = 4;
  options.overdue_after_ms = kNever;
  options.levels = {.thresholds_ms = {5, 6},
                    .gittins = true,
                    .min_run_per_cost = 0.1 + 0.2,
                    .max_overhead_share = 1e-9};
  options.max_reserved_share = 0.7;
  const ScheduleOptions after =
      CycleFromJson(CycleToJson(CycleOn(RandomSnapshot(3), 1, options))).options;
  EXPECT_EQ(after.min_between_resizes_ms, 1);
  EXPECT_EQ(after.max_checkpoint_interval_ms, 2);
  EXPECT_EQ(after.max_yields_to_backfill, 4);
  EXPECT_EQ(after.overdue_after_ms, kNever);
  EXPECT_EQ(after.levels.thresholds_ms, options.levels.thresholds_ms);
  EXPECT_TRUE(after.levels.gittins);
  EXPECT_EQ(after.levels.min_run_per_cost, options.levels.min_run_per_cost);
  EXPECT_EQ(after.levels.max_overhead_share, 1e-9);
  EXPECT_EQ(after.max_reserved_share, 0.7);
}

TEST(CycleJson, EveryKindOfDecisionIsKept) {
  Cycle cycle = RandomCycle(5);
  const JobId job = cycle.snapshot.jobs.front().id;
  cycle.decisions = {.starts = {{job, {{0, 2}}, true}},
                     .stops = {{job, StopReason::kNodeLeaving, 7, "ann"}},
                     .resizes = {{job, {{0, 1}}, 8}},
                     .checkpoints = {job},
                     .scale_out = {{0, 3}},
                     .scale_in = {{0}},
                     .reservations = {{job, {{0, 4}}}},
                     .waits = {{job, WaitReason::kReserved, 9}},
                     .look_again = 10};
  const Json json = Json::parse(DecisionsToJson(CycleFromJson(CycleToJson(cycle)).decisions));
  const Json placement = {{{"node", 0}, {"workers", 2}}};
  EXPECT_EQ(json["starts"][0], Json({{"job", job}, {"placement", placement}, {"backfill", true}}));
  EXPECT_EQ(json["stops"][0]["reason"], "node_leaving");
  EXPECT_EQ(json["stops"][0]["on_behalf_of"], 7);
  EXPECT_EQ(json["resizes"][0]["on_behalf_of"], 8);
  EXPECT_EQ(json["checkpoints"], Json::array({job}));
  EXPECT_EQ(json["scale_out"][0], Json({{"pool", 0}, {"nodes", 3}}));
  EXPECT_EQ(json["scale_in"][0], Json({{"node", 0}}));
  EXPECT_EQ(json["reservations"][0]["placement"][0]["workers"], 4);
  EXPECT_EQ(json["waits"][0]["reason"], "reserved");
  EXPECT_EQ(json["waits"][0]["blocked_by"], 9);
  EXPECT_EQ(json["look_again"], 10);
}

TEST(CycleJson, EveryReasonHasAWordOfItsOwn) {
  std::set<std::string> words;
  for (int reason = 0; reason <= static_cast<int>(StopReason::kRequested); ++reason)
    words.insert(WordOf(static_cast<StopReason>(reason)));
  EXPECT_EQ(words.size(), static_cast<size_t>(StopReason::kRequested) + 1);
  words.clear();
  for (int reason = 0; reason <= static_cast<int>(WaitReason::kWithheld); ++reason)
    words.insert(WordOf(static_cast<WaitReason>(reason)));
  EXPECT_EQ(words.size(), static_cast<size_t>(WaitReason::kWithheld) + 1);
  EXPECT_FALSE(words.contains(""));
}

TEST(CycleJson, ErrorsNameTheField) {
  const std::string text = CycleToJson(RandomCycle(5));
  const std::string snapshot = text.substr(text.find('\n'));
  const Json head = Json::parse(text.substr(0, text.find('\n')));
  const auto error = [&](const char* pointer, const Json& value) -> std::string {
    Json changed = head;
    changed[Json::json_pointer(pointer)] = value;
    try {
      CycleFromJson(changed.dump() + snapshot);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("/cycle", "x"), "the cycle's cycle is not a whole number of 64 bits");
  EXPECT_EQ(error("/options/levels/gittins", 1),
            "the cycle's options.levels.gittins is not true or false");
  EXPECT_EQ(error("/extra", 1), "the cycle has an unknown key 'extra' in its top level");
  EXPECT_THAT(error("/decisions/checkpoints", {1'000'000}), HasSubstr("a job 1000000, which"));
  EXPECT_THAT(error("/decisions/scale_in", {{{"node", 999}}}), HasSubstr("a node 999, which"));
  EXPECT_THAT(error("/decisions/scale_out", {{{"pool", -1}, {"nodes", 1}}}),
              HasSubstr("a pool -1, which"));
  EXPECT_THROW(CycleFromJson(head.dump()), Error);
}

TEST(Replay, NamesTheFirstDifference) {
  Cycle cycle;
  for (uint64_t seed = 0; cycle.decisions.starts.empty(); ++seed) cycle = RandomCycle(seed);
  Cycle changed = cycle;
  changed.decisions.starts[0].placement[0].workers += 1;
  EXPECT_THAT(DifferenceOnReplay(changed), HasSubstr("starts[0].placement[0].workers: "));
  changed = cycle;
  changed.decisions.starts.pop_back();
  EXPECT_THAT(DifferenceOnReplay(changed), HasSubstr("none was recorded, and now there is"));
  changed = cycle;
  changed.snapshot.jobs.clear();
  EXPECT_THAT(DifferenceOnReplay(changed), HasSubstr("was recorded, and now there is none"));
}

}  // namespace
}  // namespace renzan::cluster::record
