#include "renzan/cluster/kubernetes/objects/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/yaml.h"
#include "renzan/cluster/spec/json_fields.h"
#include "renzan/cluster/spec/queue_rights.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string ErrorOf(const json& spec) {
  try {
    QueueSpecFrom(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

TEST(QueueSpec, HasTheRightsOfClusterYaml) {
  EXPECT_EQ(QueueSpecFrom(json::object()).rights, QueueRights());
  EXPECT_EQ(
      QueueSpecFrom(json::parse(R"({
    "members": {"users": ["system:serviceaccount:ads:ci", "ann"], "groups": ["ml"],
                "namespaces": ["web", "ads"]},
    "maxPriority": -5, "notPreemptible": false, "ofALaterVersion": 1})"))
          .rights,
      (QueueRights{
          .members = QueueMembers{{"ann", "system:serviceaccount:ads:ci"}, {"ml"}, {"ads", "web"}},
          .max_priority = -5,
          .only_preemptible = true}));
  EXPECT_THAT(ErrorOf({{"maxPriority", "high"}}), HasSubstr("max_priority must be a whole number"));
  EXPECT_THAT(ErrorOf({{"members", {{"userss", {"ann"}}}}}), HasSubstr("did you mean 'users'?"));
  EXPECT_THAT(ErrorOf({{"members", json::object()}}), HasSubstr("nobody could use the queue"));
}

TEST(QueueSpec, HasAHalfLifeForFairShare) {
  EXPECT_EQ(QueueSpecFrom(json::object()).fair_share, std::nullopt);
  EXPECT_EQ(QueueSpecFrom({{"fairShare", {{"halfLife", "0s"}}}}).fair_share, std::nullopt);
  const json week = {{"fairShare", {{"halfLife", "7d"}}}};
  EXPECT_EQ(QueueSpecFrom(week).fair_share->half_life, 7 * 24 * kHour);
  EXPECT_EQ(WithoutGuarantee(week).fair_share->half_life, 7 * 24 * kHour);
  EXPECT_THAT(ErrorOf({{"fairShare", {{"halfLife", "week"}}}}), HasSubstr("half_life"));
  EXPECT_THAT(ErrorOf({{"fairShare", json::object()}}), HasSubstr("is there, but empty"));
  EXPECT_EQ(WithoutGuarantee({{"fairShare", {{"halfLife", "week"}}}}).fair_share, std::nullopt);
}

TEST(QueueSpec, OneThatWasNeverValidIsNobodysIfItsMembersCannotBeRead) {
  const json wrong = {{"guaranteed", {{"cpu", 2}}}, {"limit", {{"cpu", 1}}}};
  EXPECT_EQ(WithoutGuarantee(wrong).rights, QueueRights());
  json closed = wrong;
  closed["members"] = {{"users", "ann"}};
  EXPECT_EQ(WithoutGuarantee(closed).rights.members, QueueMembers());
  closed["members"] = {{"users", {"ann"}}};
  EXPECT_EQ(WithoutGuarantee(closed).rights.members, (QueueMembers{{"ann"}, {}, {}}));
  EXPECT_EQ(HoldingQueueSpec({{"spec", closed}}).rights.members, (QueueMembers{{"ann"}, {}, {}}));
}

TEST(QueueSpec, MayHaveAParent) {
  EXPECT_EQ(QueueSpecFrom(json::object()).parent, "");
  EXPECT_EQ(QueueSpecFrom({{"parent", "research"}}).parent, "research");
  EXPECT_THAT(ErrorOf({{"parent", 5}}), HasSubstr("spec.parent is 5: it must be the name of"));
  const json wrong = {{"limit", {{"cpu", "much"}}}, {"parent", "research"}};
  EXPECT_EQ(WithoutGuarantee(wrong).parent, "research");
}

// The API server drops what the definition does not know.
TEST(QueueSpec, TheDefinitionHasEveryRight) {
  const std::string path = RENZAN_DEPLOY "/crds/queues.yaml";
  const json definition = JsonFromYaml(ReadFile(path), path);
  const json& spec = At(definition["spec"]["versions"][0],
                        {"schema", "openAPIV3Schema", "properties", "spec", "properties"});
  QueueRights rights;
  std::set<std::string> keys;
  for (const ConfigValue& each :
       ListConfig([&](ConfigFields& fields) { spec::DescribeRights(fields, rights, true); })) {
    const json* properties = &spec;
    for (const std::string& key : each.path) {
      std::string camel;
      for (size_t i = 0; i < key.size(); ++i)
        camel += key[i] == '_' ? static_cast<char>(key[++i] - 'a' + 'A') : key[i];
      EXPECT_TRUE(properties->contains(camel)) << each.key() << " is missing in " << path;
      keys.insert(camel);
      properties = &At(*properties, {camel, "properties"});
    }
  }
  EXPECT_EQ(keys.size(), 6u);
  EXPECT_TRUE(At(spec, {"parent"}).is_object());
  EXPECT_TRUE(At(spec, {"fairShare", "properties", "halfLife"}).is_object());
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
