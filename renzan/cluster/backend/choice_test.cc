#include "renzan/cluster/backend/choice.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

class Choice : public ::testing::Test {
 protected:
  // "daemon", "current context", or a context's name.
  std::string Of(const ClusterFlags& flags = {}) {
    const ClusterChoice choice = ChooseCluster(
        flags,
        [&](const char* name) -> const char* {
          const auto at = environment_.find(name);
          return at == environment_.end() ? nullptr : at->second.c_str();
        },
        [&](const std::string& path) { return files_.contains(path); });
    if (!choice.kubernetes) return "daemon";
    return choice.context.empty() ? "current context" : choice.context;
  }

  std::map<std::string, std::string> environment_ = {{"HOME", "/home/a"}};
  std::set<std::string> files_;
};

TEST_F(Choice, IsTheDaemonUnlessSomethingSaysOtherwise) { EXPECT_EQ(Of(), "daemon"); }

TEST_F(Choice, IsKubernetesWhereThereIsAKubeconfigAndNoDaemonsState) {
  files_ = {"/home/a/.kube/config"};
  EXPECT_EQ(Of(), "current context");
  files_.insert("/home/a/.local/state/renzan");
  EXPECT_EQ(Of(), "daemon");
  environment_["KUBECONFIG"] = "/k";
  EXPECT_EQ(Of(), "daemon");
  files_.clear();
  EXPECT_EQ(Of(), "current context");
}

TEST_F(Choice, IsTheDaemonThatTheEnvironmentNames) {
  files_ = {"/home/a/.kube/config"};
  environment_["RENZAN_SOCKET"] = "/s";
  EXPECT_EQ(Of(), "daemon");
  environment_.erase("RENZAN_SOCKET");
  environment_["RENZAN_STATE_DIR"] = "/state";
  EXPECT_EQ(Of(), "daemon");
  environment_.erase("RENZAN_STATE_DIR");
  environment_["RENZAN_TOKEN_FILE"] = "/token";
  EXPECT_EQ(Of(), "daemon");
}

TEST_F(Choice, FollowsTheFlagThenTheVariable) {
  EXPECT_EQ(Of({.cluster = "kubernetes"}), "current context");
  EXPECT_EQ(Of({.cluster = "prod"}), "prod");
  environment_["RENZAN_CLUSTER"] = "dev";
  files_ = {"/home/a/.local/state/renzan"};
  EXPECT_EQ(Of(), "dev");
  EXPECT_EQ(Of({.cluster = "local"}), "daemon");
  EXPECT_EQ(Of({.socket = "/s"}), "daemon");
}

TEST_F(Choice, RefusesFlagsThatContradictEachOther) {
  EXPECT_THROW(Of({.cluster = "prod", .socket = "/s"}), Error);
  EXPECT_THROW(Of({.cluster = "local", .ns = "a"}), Error);
  EXPECT_THROW(Of({.ns = "a", .socket = "/s"}), Error);
}

}  // namespace
}  // namespace renzan::cluster
