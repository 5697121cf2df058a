#include "renzan/cluster/kubernetes/objects/dropped_field.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

std::string Dropped(const char* written, const char* there) {
  return DroppedField(json::parse(written), json::parse(there), "status");
}

TEST(DroppedField, NamesTheFirstThatIsMissing) {
  EXPECT_EQ(Dropped(R"({"a": 1, "b": {"c": 2}})", R"({"a": 1, "b": {"c": 2}})"), "");
  EXPECT_EQ(Dropped(R"({"a": 1, "b": {"c": 2}})", R"({"a": 1})"), "status.b");
  EXPECT_EQ(Dropped(R"({"a": 1, "b": {"c": 2}})", R"({"a": 1, "b": {}})"), "status.b.c");
}

TEST(DroppedField, OtherValuesAreNotMissing) {
  // Server defaults, and an amount that it writes differently; null means absent.
  EXPECT_EQ(Dropped(R"({"a": 1})", R"({"a": "1", "b": 2})"), "");
  EXPECT_EQ(Dropped(R"({"a": null, "b": [{"c": 1}]})", R"({"b": [{}]})"), "");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
