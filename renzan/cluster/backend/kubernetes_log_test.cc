// Following output on Kubernetes although connections break.

#include "renzan/cluster/backend/kubernetes_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/backend/kubernetes_backend_testing.h"

namespace renzan::cluster {
namespace {

using ::testing::HasSubstr;

kubernetes::ApiError Away() { return {0, "NotReached", "nobody there", false}; }

// What each connection shows, from the beginning of the output, before it breaks; the last one ends
// with the pod.
class BreakingLogs : public kubernetes::PodLogs {
 public:
  void Read(const kubernetes::LogRequest&,
            const std::function<void(std::string_view)>& take) override {
    ++connections;
    if (shown.empty()) throw Away();
    const std::string text = std::exchange(shown.front(), "");
    shown.pop_front();
    for (size_t at = 0; at < text.size(); at += 3) take(std::string_view(text).substr(at, 3));
    if (!shown.empty() || !at_end) throw kubernetes::ApiError(0, "Disconnected", "cut off", false);
    at_end();
  }
  std::deque<std::string> shown;
  std::function<void()> at_end;  // empty: it breaks, too
  int connections = 0;
};

class KubernetesLogTest : public KubernetesBackendTest {
 protected:
  KubernetesLogTest() {
    cluster_.AddJob("ads", "train", kubernetes::JobSpec(1, 1), 20 * kSecond);
    Run(15 * kSecond);
    logs_.at_end = [this] { Run(kMinute); };
  }
  std::string Follow(const LogQuery& query) {
    std::string text;
    SharedApi api(cluster_, lists_);
    ReadWorkerLog(
        api, logs_,
        [&] {
          if (away_ > 0 && away_-- > 0 && logs_.connections > 0) throw Away();
          return kubernetes::GangJobFrom(std::make_shared<const nlohmann::json>(
              cluster_.Get(kubernetes::GangJobs(), "ads", "train", "")));
        },
        query, [&](std::string_view piece) { text += piece; },
        {manual_, [this](double seconds) { manual_.seconds += seconds; }});
    return text;
  }
  ManualClock manual_;
  BreakingLogs logs_;
  int away_ = 0;
};

TEST_F(KubernetesLogTest, GoesOnWhereItWas) {
  logs_.shown = {"one\ntw", "one\ntwo\nth", "", "one\n", "one\ntwo\nthree\n"};
  away_ = 4;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Follow({.attempt = 0, .follow = true}), "one\ntwo\nthree\n");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the output of job ads/train breaks off (cut off): trying for a minute"));
}

TEST_F(KubernetesLogTest, GivesUpAfterAMinute) {
  logs_.shown = {"one\n"};
  logs_.at_end = nullptr;
  EXPECT_THROW(Follow({.attempt = 0, .follow = true}), Error);
  EXPECT_NEAR(manual_.seconds, 100 + 62.5, 2.6);
}

TEST_F(KubernetesLogTest, DoesNotGoOnBehindADroppedBeginning) {
  logs_.shown = {"one\ntwo\n", "two\nthree\nfour\n"};
  try {
    Follow({.attempt = 0, .follow = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_THAT(error.what(), HasSubstr("no longer has the beginning"));
  }
}

TEST_F(KubernetesLogTest, BreaksOffWhereItCannotGoOn) {
  for (const LogQuery& query : {LogQuery{.attempt = 0}, {.tail = 1, .follow = true}}) {
    logs_.shown = {"one\n", "one\n"};
    EXPECT_THROW(Follow(query), kubernetes::ApiError);
    EXPECT_EQ(logs_.shown.size(), 1u);
  }
}

}  // namespace
}  // namespace renzan::cluster
