#include "renzan/cluster/kubernetes/objects/amounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Container(const json& limits) { return {{"resources", {{"limits", limits}}}}; }

Amounts RequestOf(const std::vector<json>& containers) {
  return PodRequest({{"containers", containers}});
}

TEST(Amounts, AddsWhatContainersRequest) {
  const Amounts request = RequestOf({Container({{"cpu", "500m"}, {"memory", "1Gi"}}),
                                     Container({{"cpu", 1}, {"nvidia.com/gpu", "2"}})});
  EXPECT_EQ(request,
            (Amounts{{"cpu", 1500}, {"memory", 1 << 30}, {"nvidia.com/gpu", 2}, {"pods", 1}}));
  Snapshot snapshot;
  snapshot.resource_names.push_back(kPodsResource);
  const Resources resources = RequestFrom(request, snapshot);
  EXPECT_EQ(resources[kCpu], 1500);
  EXPECT_EQ(resources[kMemory], 1024);
  EXPECT_EQ(resources.gpu(), 2);
}

// A request that is too large gets nothing, and above all must not increase a quota.
TEST(Amounts, WhatIsTooLargeNeitherWrapsAroundNorVanishes) {
  Snapshot snapshot;
  snapshot.resource_names.push_back(kPodsResource);
  for (const auto& [name, amount] : {std::pair{"nvidia.com/gpu", "5E"},
                                     {"nvidia.com/gpu", "12E"},
                                     {"nvidia.com/gpu", "1e9999"},
                                     {"nvidia.com/gpu", "10G"},
                                     {"cpu", "5E"},
                                     {"memory", "16Ei"}}) {
    const json container = Container({{name, amount}});
    const Amounts request = RequestOf({container, container});
    EXPECT_GT(request.at(name), 1'000'000'000) << name << amount;
    try {
      RequestFrom(request, snapshot);
      FAIL() << name << amount;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("no node has so much ") + name));
    }
  }
  // All workers of many jobs of the largest accepted size are still a valid number.
  const Resources most =
      RequestFrom(RequestOf({Container({{"memory", "8Pi"}, {"nvidia.com/gpu", "9G"}})}), snapshot);
  EXPECT_GT((most * 100'000 * 10'000).gpu(), 0);
  EXPECT_GT((most * 100'000 * 10'000)[kMemory], 0);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
