// What the daemon answers users to whom a queue is not open, by the user and the groups of the
// machine that a request came from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "renzan/base/file/file.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/local/controller/fake_agent_for_test.h"
#include "renzan/cluster/local/server/api.h"
#include "renzan/cluster/local/supervisor/job_user.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

class ApiRightsTest : public ::testing::Test {
 protected:
  ApiRightsTest() {
    spec::ClusterConfig config;
    config.pools["own"].resources.gpu = 4;
    config.queues["default"] = {};
    config.queues["roots"].rights.members = QueueMembers{{"root"}, {}, {}};
    config.queues["theirs"].rights = {.members = QueueMembers{{}, {GroupOf(kTheirs)}, {}},
                                      .max_priority = 10};
    controller_ = std::make_unique<Controller>(
        ControllerOptions{
            .state_dir = directory_.path(),
            .uid = 0,
            .schedule = [](const Snapshot& snapshot) { return Schedule(snapshot); },
            .validate = Validate,
            .why_infeasible = [](const Snapshot&, const Job&) -> std::string { return ""; }},
        spec::MakeSnapshot(config, 0), store_, agent_, SystemClock());
    controller_->Recover();
    loop_ = std::make_unique<Loop>(*controller_, -1);
    thread_ = std::thread([this] { loop_->Serve(); });
  }
  ~ApiRightsTest() override {
    loop_->Stop();
    thread_.join();
  }

  static std::string GroupOf(uid_t uid) { return GroupNames(uid, uid).front(); }

  Json Ask(uid_t uid, const std::string& method, std::vector<std::string> path,
           const std::string& body = "") {
    const ServerAnswer response =
        Answer({.loop = *loop_, .state_dir = directory_.path(), .needs_groups = true},
               {.method = method,
                .path = std::move(path),
                .query = {},
                .body = body,
                .caller = {.uid = uid, .gid = uid, .name = UserName(uid)}});
    Json answer = Json::parse(response.text);
    answer["status"] = response.status;
    return answer;
  }
  Json Send(uid_t uid, std::vector<std::string> path, const std::string& lines) {
    const Json body = {{"spec", "command: [a]\n" + lines}, {"submit_dir", "/tmp"}};
    return Ask(uid, "POST", std::move(path), body.dump());
  }
  // The message of the refusal; "" if there is none.
  std::string Refusal(uid_t uid, const std::string& lines) {
    const Json answer = Send(uid, {"v1", "jobs"}, lines);
    if (answer["status"] == 201) return "";
    EXPECT_EQ(answer["status"], 403);
    EXPECT_EQ(answer["error"]["code"], 77);
    return answer["error"]["message"];
  }

  // The account that owns nothing, and one without a name.
  static constexpr uid_t kTheirs = 65534, kOthers = 77777;

  TemporaryDirectory directory_;
  Store store_{directory_ / "state.db"};
  FakeAgent agent_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

TEST_F(ApiRightsTest, AQueueIsForItsMembersAndTheOperator) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to read what other users submit";
  EXPECT_EQ(Refusal(kTheirs, "queue: theirs"), "");
  EXPECT_EQ(Refusal(0, "queue: theirs"), "");
  EXPECT_THAT(Refusal(kOthers, "queue: theirs"),
              HasSubstr("queue 'theirs' is for its members, and user 'uid-77777' is none of them "
                        "(queues.theirs.members): use default, or ask the operator"));
  EXPECT_THAT(Refusal(kTheirs, "queue: roots"), HasSubstr("use default or theirs, or ask"));
  EXPECT_EQ(Refusal(0, "queue: roots"), "");
}

TEST_F(ApiRightsTest, APriorityNeedsARight) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to read what other users submit";
  EXPECT_THAT(Refusal(kTheirs, "priority: 1"), HasSubstr("may have at most 0"));
  EXPECT_EQ(Refusal(kTheirs, "priority: -1"), "");
  EXPECT_EQ(Refusal(0, "priority: 1"), "");
  EXPECT_EQ(Refusal(kTheirs, "queue: theirs\npriority: 10"), "");
  EXPECT_THAT(Refusal(kTheirs, "queue: theirs\npriority: 11"), HasSubstr("may have at most 10"));
  // What is suggested to a user who waits is what they could have submitted.
  const auto most = [&](const char* id) {
    return Ask(kTheirs, "GET", {"v1", "jobs", id})["max_priority"];
  };
  EXPECT_EQ(most("1"), 0);
  EXPECT_EQ(most("2"), spec::kMaxPriority);
  EXPECT_EQ(most("3"), 10);
}

TEST_F(ApiRightsTest, APlanIsForWhoeverMaySubmitIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to read what other users submit";
  const auto plan = [&](uid_t uid) {
    return Send(uid, {"v1", "challenge", "plan"}, "queue: theirs")["status"];
  };
  EXPECT_EQ(plan(kTheirs), 200);
  EXPECT_EQ(plan(kOthers), 403);
}

TEST_F(ApiRightsTest, TheStatusSaysWhoMayUseAQueue) {
  const Json status = Ask(kTheirs, "GET", {"v1", "status"});
  const Json& queues = status.at("queues");
  ASSERT_EQ(queues.size(), 3u);
  EXPECT_EQ(queues[0]["members"], nullptr);
  EXPECT_EQ(queues[0]["max_priority"], 0);
  EXPECT_EQ(queues[1]["members"]["users"], Json({"root"}));
  EXPECT_EQ(queues[2]["members"]["groups"], Json({GroupOf(kTheirs)}));
  EXPECT_EQ(queues[2]["max_priority"], 10);
  EXPECT_EQ(status["you"]["administrator"], false);
  EXPECT_THAT(status["you"]["groups"].get<std::vector<std::string>>(), Contains(GroupOf(kTheirs)));
}

}  // namespace
}  // namespace renzan::cluster::local
