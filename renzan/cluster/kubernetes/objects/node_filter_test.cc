#include "renzan/cluster/kubernetes/objects/node_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

json Affinity(const json& terms) {
  return {{"affinity",
           {{"nodeAffinity",
             {{"requiredDuringSchedulingIgnoredDuringExecution",
               {{"nodeSelectorTerms", terms.is_object() ? json::array({terms}) : terms}}}}}}}};
}

json Tolerations(const json& toleration) { return {{"tolerations", json::array({toleration})}}; }

json Expression(const char* key, const char* operation, const json& values = json::array()) {
  return {{"matchExpressions", {{{"key", key}, {"operator", operation}, {"values", values}}}}};
}

TEST(NodeFilter, KeepsRequiredAffinity) {
  const auto admits = [](const json& terms, const Labels& labels) {
    return NodeFilter(Affinity(terms)).Admits("n1", labels, {});
  };
  const Labels a100 = {{"gpu", "a100"}, {"generation", "8"}};
  EXPECT_TRUE(NodeFilter(json::object()).Admits("n1", a100, {}));
  EXPECT_TRUE(admits({Expression("gpu", "In", {"h100", "a100"})}, a100));
  EXPECT_FALSE(admits({Expression("gpu", "In", {"h100"})}, a100));
  EXPECT_FALSE(admits({Expression("rack", "In", {"n1"})}, a100));
  EXPECT_TRUE(admits({Expression("rack", "NotIn", {"r1"})}, a100));
  EXPECT_FALSE(admits({Expression("gpu", "NotIn", {"a100"})}, a100));
  EXPECT_TRUE(admits({Expression("gpu", "Exists")}, a100));
  EXPECT_FALSE(admits({Expression("gpu", "DoesNotExist")}, a100));
  EXPECT_TRUE(admits({Expression("generation", "Gt", {"7"})}, a100));
  EXPECT_FALSE(admits({Expression("generation", "Gt", {"8"})}, a100));
  EXPECT_TRUE(admits({Expression("generation", "Lt", {"9"})}, a100));
  EXPECT_FALSE(admits({Expression("gpu", "Lt", {"9"})}, a100));
  // One of the terms, and all requirements of it.
  EXPECT_TRUE(admits({Expression("rack", "Exists"), Expression("gpu", "Exists")}, a100));
  json both = Expression("gpu", "Exists");
  both["matchExpressions"].push_back({{"key", "rack"}, {"operator", "Exists"}});
  EXPECT_FALSE(admits({both}, a100));
  EXPECT_FALSE(admits(json::array(), a100));
  EXPECT_FALSE(admits({json::object()}, a100));
  const json name = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}};
  EXPECT_TRUE(admits({{{"matchFields", {name}}}}, a100));
  EXPECT_FALSE(NodeFilter(Affinity({{{"matchFields", {name}}}})).Admits("n2", a100, {}));
}

TEST(NodeFilter, KeepsOffTaintsThatAreNotTolerated) {
  const std::vector<Taint> taints =
      TaintsFrom({{{"key", "team"}, {"value", "ads"}, {"effect", "NoSchedule"}},
                  {{"key", "soft"}, {"effect", "PreferNoSchedule"}}});
  ASSERT_EQ(taints.size(), 1u);
  const auto admits = [&](const json& toleration) {
    return NodeFilter(Tolerations(toleration)).Admits("n1", {}, taints);
  };
  EXPECT_FALSE(NodeFilter(json::object()).Admits("n1", {}, taints));
  EXPECT_TRUE(admits({{"operator", "Exists"}}));
  EXPECT_TRUE(admits({{"key", "team"}, {"operator", "Exists"}}));
  EXPECT_TRUE(admits({{"key", "team"}, {"value", "ads"}}));
  EXPECT_FALSE(admits({{"key", "team"}, {"value", "other"}}));
  EXPECT_FALSE(admits({{"key", "team"}, {"value", "ads"}, {"effect", "NoExecute"}}));
  EXPECT_TRUE(admits({{"key", "team"}, {"value", "ads"}, {"effect", "NoSchedule"}}));
  EXPECT_TRUE(NodeFilter().Admits("n1", {}, {{kDedicatedTaint, "renzan", "NoExecute"}}));
  // A pod that tolerates the taint only for a while is evicted after that.
  const json a_while = {{"operator", "Exists"}, {"tolerationSeconds", 300}};
  EXPECT_FALSE(NodeFilter(Tolerations(a_while)).Admits("n1", {}, {{"team", "ads", "NoExecute"}}));
}

TEST(NodeFilter, RefusesWhatItCannotKeep) {
  const json terms = {{"requiredDuringSchedulingIgnoredDuringExecution", {json::object()}}};
  for (const json& spec :
       {Affinity({Expression("gpu", "Like", {"a*"})}),
        Affinity({{{"matchFields", {{{"key", "spec.x"}, {"operator", "Exists"}}}}}}),
        json{{"affinity", {{"podAffinity", terms}}}},
        json{{"affinity", {{"podAntiAffinity", terms}}}},
        json{{"topologySpreadConstraints", {json::object()}}}})
    EXPECT_THROW(NodeFilter{spec}, Error) << spec;
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
