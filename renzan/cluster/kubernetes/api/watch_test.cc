#include "renzan/cluster/kubernetes/api/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>
#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/api/http_api.h"
#include "renzan/cluster/kubernetes/api/server_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const WatchOptions kFast{.kind = {"", "v1", "pods", "Pod"},
                         .first_backoff_seconds = 0.001,
                         .longest_backoff_seconds = 0.004};

Json Pod(const std::string& name, int version, const std::string& uid = "") {
  return {{"metadata",
           {{"name", name},
            {"namespace", "ns"},
            {"uid", uid.empty() ? "u-" + name : uid},
            {"resourceVersion", std::to_string(version)}}}};
}

Json PodList(int version, std::vector<Json> items) {
  return {{"metadata", {{"resourceVersion", std::to_string(version)}}}, {"items", items}};
}

using Take = std::function<void(std::string_view, Json&&)>;

// What a server does, call by call; at the end of the script it neither answers nor ends a stream.
class Script {
 public:
  Script& Lists(std::function<Json()> list) {
    steps_.push_back([list](const std::string& version, const Take&) {
      EXPECT_EQ(version, "") << "a watch, where a list was expected";
      return list();
    });
    return *this;
  }
  Script& Lists(int version, std::vector<Json> items) {
    return Lists([list = PodList(version, items)] { return list; });
  }
  Script& Watches(const std::string& from, std::function<void(const Take&)> watch) {
    steps_.push_back([from, watch](const std::string& version, const Take& take) {
      EXPECT_EQ(version, from);
      watch(take);
      return Json();
    });
    return *this;
  }

  Json Run(const std::string& version, const Take& take, const std::stop_token& stop) {
    if (!steps_.empty()) {
      const auto step = std::move(steps_.front());
      steps_.pop_front();
      return step(version, take);
    }
    std::unique_lock lock(mutex_);
    done_ = true;
    changed_.notify_all();
    changed_.wait(lock, stop, [] { return false; });
    throw ApiError(0, "Stopped", "stopped", false);
  }
  void WaitUntilDone() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }

 private:
  std::deque<std::function<Json(const std::string& version, const Take&)>> steps_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool done_ = false;
};

// Implements only what a Watch needs.
class ScriptedApi : public Api {
 public:
  ScriptedApi(Script& script, std::stop_token stop) : script_(script), stop_(std::move(stop)) {}

  Json List(const Kind&, const std::string&, const Selector&) override {
    return script_.Run("", {}, stop_);
  }
  void Watch(const Kind&, const std::string&, const Selector&, const std::string& version,
             const Take& take) override {
    script_.Run(version, take, stop_);
  }
  Json Get(const Kind&, const std::string&, const std::string&, const std::string&) override {
    return Unexpected();
  }
  Json Create(const Kind&, const std::string&, const Json&) override { return Unexpected(); }
  Json Replace(const Kind&, const std::string&, const Json&, const std::string&) override {
    return Unexpected();
  }
  Json MergePatch(const Kind&, const std::string&, const std::string&, const Json&,
                  const std::string&) override {
    return Unexpected();
  }
  void Delete(const Kind&, const std::string&, const std::string&, const std::string&,
              std::optional<int64_t>) override {
    Unexpected();
  }
  void Bind(const std::string&, const std::string&, const std::string&,
            const std::string&) override {
    Unexpected();
  }

 private:
  static Json Unexpected() {
    ADD_FAILURE() << "a Watch asks only for lists and watches";
    return {};
  }
  Script& script_;
  const std::stop_token stop_;
};

// What an owner is told: "synced a/1 b/2", "changed a/3", "deleted a/4".
class Owner {
 public:
  void Take(const WatchChange& change) {
    const auto name = [](const Json& object) {
      EXPECT_FALSE(object["metadata"].contains("managedFields"));
      return fmt::format("{}/{}", object["metadata"]["name"].get<std::string>(),
                         object["metadata"]["resourceVersion"].get<std::string>());
    };
    if (change.type == WatchChange::Type::kRelisted) {
      ++relists_;
      return;
    }
    std::string text;
    if (change.type == WatchChange::Type::kSynced) {
      text = "synced";
      for (const Json& item : *change.object) text += " " + name(item);
    } else {
      text = (change.type == WatchChange::Type::kChanged ? "changed " : "deleted ") +
             name(*change.object);
    }
    const std::lock_guard lock(mutex_);
    told_.push_back(text);
    last_ = change.object;
    changed_.notify_all();
  }
  void Report(const Error& error) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(error.what());
    changed_.notify_all();
  }
  std::vector<std::string> told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  int relists() const { return relists_; }
  std::vector<std::string> reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  std::shared_ptr<const Json> last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  void WaitForTold(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return told_.size() >= count; });
  }
  void WaitForReports(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reports_.size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> told_, reports_;
  std::atomic<int> relists_ = 0;
  std::shared_ptr<const Json> last_;
};

std::unique_ptr<Watch> Start(Owner& owner, const ApiFactory& make, WatchOptions options = kFast) {
  return std::make_unique<Watch>(
      make, options, [&owner](WatchChange change) { owner.Take(change); },
      [&owner](const Error& error) { owner.Report(error); });
}

// Runs the script to its end.
WatchCounts Play(Script& script, Owner& owner, WatchOptions options = kFast) {
  const auto watch = Start(
      owner,
      [&](std::stop_token stop) { return std::make_unique<ScriptedApi>(script, std::move(stop)); },
      options);
  script.WaitUntilDone();
  return watch->counts();
}

[[noreturn]] void Expire() { throw ApiError(410, "Expired", "too old", false); }
[[noreturn]] void Cut() { throw ApiError(0, "Disconnected", "cut", false); }

TEST(WatchTest, TellsTheListThenTheChanges) {
  Script script;
  Owner owner;
  Json noisy = Pod("c", 12);
  noisy["metadata"]["managedFields"] = Json::array({1, 2});
  script.Lists(10, {Pod("a", 3), Pod("b", 9)}).Watches("10", [&](const Take& take) {
    take("ADDED", Json(noisy));
    take("MODIFIED", Pod("a", 13));
    take("DELETED", Pod("b", 14));
  });
  const WatchCounts counts = Play(script, owner);
  EXPECT_THAT(owner.told(),
              ElementsAre("synced a/3 b/9", "changed c/12", "changed a/13", "deleted b/14"));
  EXPECT_EQ(counts.lists, 1);
  EXPECT_EQ(counts.events, 3);
  EXPECT_EQ(counts.failures, 0);
  EXPECT_GT(counts.last_seconds, 0);
  EXPECT_THAT(owner.reports(), IsEmpty());
}

TEST(WatchTest, ContinuesAfterTheLastVersionSeen) {
  Script script;
  Owner owner;
  script.Lists(10, {Pod("a", 3)})
      .Watches("10", [](const Take& take) { take("MODIFIED", Pod("a", 13)); })
      .Watches("13",
               [](const Take& take) {
                 take("BOOKMARK", {{"metadata", {{"resourceVersion", "20"}}}});
                 Cut();
               })
      .Watches("20", [](const Take&) {})
      .Watches("20", [](const Take&) { Cut(); });
  const WatchCounts counts = Play(script, owner);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/3", "changed a/13"));
  EXPECT_EQ(counts.lists, 1);
  EXPECT_EQ(counts.reconnects, 4);
  EXPECT_EQ(counts.events, 2);
  EXPECT_EQ(counts.failures, 2);
}

TEST(WatchTest, AnExpiredVersionIsRelistedAndTheDifferenceTold) {
  Script script;
  Owner owner;
  script.Lists(10, {Pod("a", 1), Pod("b", 2), Pod("c", 3), Pod("d", 4)})
      .Watches("10", [](const Take&) { Expire(); })
      // a is unchanged, b is gone, c has changed, d is another object, e is new.
      .Lists(30, {Pod("a", 1), Pod("c", 21), Pod("d", 22, "other"), Pod("e", 23)})
      .Watches("30", [](const Take& take) { take("DELETED", Pod("b", 31)); });
  const WatchCounts counts = Play(script, owner);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1 b/2 c/3 d/4", "deleted b/2", "changed c/21",
                                        "deleted d/4", "changed d/22", "changed e/23"));
  EXPECT_EQ(owner.relists(), 1);
  EXPECT_EQ(counts.lists, 2);
  EXPECT_EQ(counts.failures, 0);
  EXPECT_THAT(owner.reports(), IsEmpty());
}

TEST(WatchTest, ASynthesisedDeletionSaysWhich) {
  Script script;
  Owner owner;
  script.Lists(10, {Pod("a", 1)}).Watches("10", [](const Take&) { Expire(); }).Lists(30, {});
  Play(script, owner);
  EXPECT_EQ(*owner.last(), Pod("a", 1));
}

TEST(WatchTest, AnObjectIsNotToldTwice) {
  Script script;
  Owner owner;
  script.Lists(10, {Pod("a", 1)})
      .Watches("10",
               [](const Take& take) {
                 take("ADDED", Pod("a", 1));
                 take("ADDED", Pod("b", 11));
                 take("ADDED", Pod("b", 11));
               })
      .Watches("11", [](const Take& take) { take("DELETED", Pod("never", 12)); });
  Play(script, owner);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1", "changed b/11"));
}

TEST(WatchTest, SameNamesInTwoNamespacesAreTwoObjects) {
  Script script;
  Owner owner;
  Json other = Pod("a", 2);
  other["metadata"]["namespace"] = "other";
  script.Lists(10, {Pod("a", 1), other})
      .Watches("10", [](const Take&) { Expire(); })
      .Lists(20, {Pod("a", 1)});
  Play(script, owner);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1 a/2", "deleted a/2"));
  EXPECT_EQ((*owner.last())["metadata"]["namespace"], "other");
}

TEST(WatchTest, AFirstListThatFailsIsRepeated) {
  Script script;
  Owner owner;
  script.Lists([]() -> Json { throw ApiError(403, "Forbidden", "may not list", false); })
      .Lists([]() -> Json { throw ApiError(403, "Forbidden", "may not list", false); })
      .Lists([]() -> Json { Cut(); })
      .Lists(10, {Pod("a", 1)});
  EXPECT_EQ(Play(script, owner).failures, 3);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1"));
  EXPECT_THAT(owner.reports(), ElementsAre("may not list", "cut"));
}

TEST(WatchTest, GarbageIsReportedOnceAndRelisted) {
  const auto garbage = [](const Take& take) {
    take("ADDED", Pod("b", 99));
    throw ApiError(200, "InvalidAnswer", "garbage", false);
  };
  const auto at_once = [](const Take&) { throw ApiError(200, "InvalidAnswer", "garbage", false); };
  Script script;
  Owner owner;
  script.Lists(10, {Pod("a", 1)})
      .Watches("10", at_once)
      .Lists(20, {Pod("a", 1)})
      .Watches("20", at_once)
      .Lists(30, {Pod("a", 1)})
      .Watches("30", garbage)  // after an event: a new failure
      .Lists(40, {Pod("a", 31)});
  const WatchCounts counts =
      Play(script, owner, {.kind = kFast.kind, .first_backoff_seconds = 1e-4});
  EXPECT_THAT(owner.told(),
              ElementsAre("synced a/1", "changed b/99", "deleted b/99", "changed a/31"));
  EXPECT_THAT(owner.reports(), ElementsAre("garbage", "garbage"));
  EXPECT_EQ(counts.failures, 3);
}

TEST(WatchTest, AnObjectUnlikeAnyOtherIsGarbage) {
  Script script;
  Owner owner;
  script.Lists([] { return Json::array(); })
      .Lists(10, {Json::object()})
      .Lists(10, {Pod("a", 1)})
      .Watches("10",
               [](const Take& take) {
                 take("ADDED", {{"metadata", {{"name", 3}}}});
               })
      .Lists(20, {Pod("a", 1)});
  EXPECT_EQ(Play(script, owner).failures, 3);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1"));
}

TEST(WatchTest, AServerThatFailsIsAskedAgainForTheSameAFewTimes) {
  const auto fail = [](const Take&) { throw ApiError(500, "InternalError", "etcd", false); };
  Script script;
  Owner owner;
  script.Lists(10, {Pod("a", 1)})
      .Watches("10", fail)
      .Watches("10", fail)
      .Watches("10", fail)
      .Watches("10", fail)
      .Lists(20, {Pod("a", 15)});
  Play(script, owner, {.kind = kFast.kind, .first_backoff_seconds = 1e-4});
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1", "changed a/15"));
  EXPECT_THAT(owner.reports(), ElementsAre("etcd"));
}

TEST(WatchTest, AVersionThatExpiresAgainAndAgainBacksOff) {
  Script script;
  Owner owner;
  for (int i = 0; i < 5; ++i)
    script.Lists(10, {Pod("a", 1)}).Watches("10", [](const Take&) { Expire(); });
  EXPECT_EQ(Play(script, owner).lists, 5);
}

TEST(WatchTest, StopsWhileItWaitsToTryAgain) {
  Script script;
  Owner owner;
  script.Lists([]() -> Json { Cut(); });
  const auto watch = Start(
      owner,
      [&](std::stop_token stop) { return std::make_unique<ScriptedApi>(script, std::move(stop)); },
      {.kind = kFast.kind, .first_backoff_seconds = 3600, .longest_backoff_seconds = 3600});
  owner.WaitForReports(1);
}  // would take an hour

Access RawAccess(const RawServer& server) { return {.from = "the test", .server = server.url()}; }

constexpr const char* kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string EventLine(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

TEST(WatchTest, ResumesWhenALineIsCut) {
  std::mutex mutex;
  std::vector<std::string> requests;
  RawServer server([&](int connection, int) {
    std::string request;
    while (RawServer::ReadRequest(connection, request)) {
      size_t number = 0;
      {
        const std::lock_guard lock(mutex);
        requests.push_back(request.substr(0, request.find('\r')));
        number = requests.size();
      }
      if (number == 1) {
        RawServer::SendAnswer(connection, PodList(10, {Pod("a", 1)}).dump());
        continue;
      }
      RawServer::Send(connection, kChunked);
      const std::string b = EventLine("ADDED", Pod("b", 12));
      if (number == 2) {
        RawServer::SendChunk(connection, EventLine("ADDED", Pod("c", 11)) + b.substr(0, 30));
        return;
      }
      RawServer::SendChunk(connection, b);
      RawServer::WaitForEnd(connection);
    }
  });
  Owner owner;
  const auto watch = Start(owner, MakeHttpApis(RawAccess(server)));
  owner.WaitForTold(3);
  EXPECT_THAT(owner.told(), ElementsAre("synced a/1", "changed c/11", "changed b/12"));
  EXPECT_EQ(watch->counts().lists, 1);
  const std::lock_guard lock(mutex);
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_THAT(requests[1], HasSubstr("resourceVersion=10&"));
  EXPECT_THAT(requests[2], HasSubstr("resourceVersion=11&"));
}

TEST(WatchTest, StopsThoughTheServerIsSilent) {
  // During the list, and during a stream.
  for (const bool lists : {false, true}) {
    RawServer server([&](int connection, int) {
      std::string request;
      if (lists && RawServer::ReadRequest(connection, request))
        RawServer::SendAnswer(connection, PodList(10, {}).dump());
      RawServer::WaitForEnd(connection);
    });
    Owner owner;
    const auto watch = Start(owner, MakeHttpApis(RawAccess(server)));
    if (lists) owner.WaitForTold(1);
  }  // would take longer than ctest allows
}

TEST(WatchTest, NoticesAServerThatForgetsAStream) {
  std::atomic<int> streams = 0;
  std::latch second_stream(2);
  RawServer server([&](int connection, int index) {
    std::string request;
    if (!RawServer::ReadRequest(connection, request)) return;
    if (index == 0) {
      RawServer::SendAnswer(connection, PodList(10, {}).dump());
      if (!RawServer::ReadRequest(connection, request)) return;
    }
    RawServer::Send(connection, kChunked);
    if (streams++ < 2) second_stream.count_down();
    RawServer::WaitForEnd(connection);
  });
  Owner owner;
  const auto watch = Start(
      owner, MakeHttpApis(RawAccess(server), {.watch_seconds = 0, .watch_grace_seconds = 0.05}));
  second_stream.wait();
  EXPECT_EQ(watch->counts().lists, 1);
  EXPECT_THAT(owner.told(), ElementsAre("synced"));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
