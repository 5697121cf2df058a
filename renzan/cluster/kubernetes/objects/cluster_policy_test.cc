#include "renzan/cluster/kubernetes/objects/cluster_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string WhatIsWrongWith(const json& spec) {
  try {
    ClusterPolicyFrom(spec);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ClusterPolicy, AnEmptyOneIsWhatHoldsWithoutAny) {
  const ClusterPolicy empty = ClusterPolicyFrom(json::object()), none;
  EXPECT_EQ(empty.limits, none.limits);
  EXPECT_EQ(empty.topology, none.topology);
  EXPECT_EQ(empty.notice_ms, none.notice_ms);
  EXPECT_EQ(empty.keep_ended_ms, 0);
  EXPECT_TRUE(std::isinf(empty.budget_per_hour));
  EXPECT_EQ(empty.scheduling.overdue_after_ms, none.scheduling.overdue_after_ms);
  EXPECT_EQ(empty.scheduling.levels.thresholds_ms, none.scheduling.levels.thresholds_ms);
}

TEST(ClusterPolicy, SaysEverything) {
  const ClusterPolicy policy = ClusterPolicyFrom(json::parse(R"({
    "scheduling": {"order": "gittins", "serviceLevels": ["2h", "8h"], "minBetweenResizes": "1m",
                   "maxCheckpointInterval": "5m", "overdueAfter": "1h"},
    "userCaps": [{"namespace": "ads", "maxGpus": 8}],
    "overrides": [{"namespace": "ads", "maxGpus": 16, "until": "1970-01-01T00:00:05Z"},
                  {"namespace": "ads", "until": "1970-01-01T00:00:09Z"}],
    "limits": {"maxPriority": 7, "maxPendingJobs": 3, "notPreemptible": false,
               "grandChallenge": true, "exemptNamespaces": ["operators"]},
    "budgetPerHour": 12.5,
    "topology": [{"level": "row", "label": "example.com/row"}],
    "spotNotice": "30s",
    "retention": {"keepEndedFor": "2d"}})"));
  EXPECT_TRUE(policy.scheduling.levels.gittins);
  EXPECT_THAT(policy.scheduling.levels.thresholds_ms, ::testing::ElementsAre(2 * kHour, 8 * kHour));
  EXPECT_EQ(policy.scheduling.min_between_resizes_ms, kMinute);
  EXPECT_EQ(policy.scheduling.max_checkpoint_interval_ms, 5 * kMinute);
  EXPECT_EQ(policy.scheduling.overdue_after_ms, kHour);
  EXPECT_EQ(policy.caps.at("ads"), 8);
  ASSERT_EQ(policy.overrides.at("ads").size(), 2u);
  EXPECT_EQ(policy.overrides.at("ads")[0].max_gpus, 16);
  EXPECT_EQ(policy.overrides.at("ads")[0].until, 5 * kSecond);
  EXPECT_EQ(policy.overrides.at("ads")[1].max_gpus, kUnlimited);
  EXPECT_EQ(policy.limits, (NamespaceLimits{.max_priority = 7,
                                            .max_pending_jobs = 3,
                                            .not_preemptible = false,
                                            .grand_challenge = true,
                                            .exempt = {"operators"}}));
  EXPECT_EQ(policy.budget_per_hour, 12.5);
  EXPECT_THAT(policy.topology, ::testing::ElementsAre(std::pair("row", "example.com/row")));
  EXPECT_EQ(policy.notice_ms, 30 * kSecond);
  EXPECT_EQ(policy.keep_ended_ms, 48 * kHour);
}

TEST(ClusterPolicy, SaysWhatIsWrong) {
  EXPECT_THAT(WhatIsWrongWith({{"scheduling", {{"order", "random"}}}}), HasSubstr("order"));
  EXPECT_THAT(WhatIsWrongWith({{"scheduling", {{"serviceLevels", {"4h", "1h"}}}}}),
              HasSubstr("service_levels"));
  const json rack = {{"level", "rack"}, {"label", "a"}}, host = {{"level", "host"}, {"label", "b"}};
  const json other = {{"level", "zone"}, {"label", "a"}};
  EXPECT_THAT(WhatIsWrongWith({{"topology", {rack, rack}}}), HasSubstr("level rack twice"));
  EXPECT_THAT(WhatIsWrongWith({{"topology", {rack, other}}}), HasSubstr("label a twice"));
  EXPECT_THAT(WhatIsWrongWith({{"topology", {rack, host}}}), HasSubstr("leave it out"));
  const json cap = {{"namespace", "ads"}, {"maxGpus", 1}};
  EXPECT_THAT(WhatIsWrongWith({{"userCaps", {cap, cap}}}), HasSubstr("namespace ads twice"));
  EXPECT_THAT(WhatIsWrongWith({{"overrides", {{{"namespace", "ads"}, {"until", "soon"}}}}}),
              HasSubstr("'soon'"));
  EXPECT_THAT(WhatIsWrongWith({{"budgetPerHour", -1}}), HasSubstr("negative"));
  EXPECT_THAT(WhatIsWrongWith({{"spotNotice", "soon"}}), HasSubstr("duration"));
  EXPECT_THAT(WhatIsWrongWith({{"retention", {{"keepEndedFor", "1w"}}}}),
              HasSubstr("keep_ended_for"));
}

TEST(ClusterPolicy, WhatHeldBeforeHoldsOnIfItCannotBeUsed) {
  const auto holding = [](const json& object) { return HoldingPolicy(object).limits.max_priority; };
  const json good = {{"limits", {{"maxPriority", 7}}}}, bad = {{"spotNotice", "soon"}};
  EXPECT_EQ(holding({{"spec", good}}), 7);
  EXPECT_EQ(holding({{"spec", bad}, {"status", {{"holds", good.dump()}}}}), 7);
  EXPECT_EQ(holding({{"spec", bad}}), ClusterPolicy().limits.max_priority);
  EXPECT_EQ(holding({{"spec", bad}, {"status", {{"holds", "{"}}}}),
            ClusterPolicy().limits.max_priority);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
