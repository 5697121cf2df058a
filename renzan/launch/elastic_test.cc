#include "renzan/launch/elastic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Kind = LaunchResult::Kind;
using std::chrono::steady_clock;
using testing::ElementsAre;
using testing::HasSubstr;

LaunchResult Failure(int status, int died = 0) {
  return {.kind = Kind::kFailure,
          .exit_status = status,
          .transient = true,
          .died = died,
          .cause = "worker 1 failed",
          .ends = {{.exit_code = status}, {.exit_code = 69}}};
}

TEST(MayBeFixedByRestartTest, OnlyTransientFailures) {
  LaunchResult failure = Failure(69, 1);
  EXPECT_TRUE(MayBeFixedByRestart(failure));
  failure.transient = false;
  EXPECT_FALSE(MayBeFixedByRestart(failure));
}

TEST(MayBeFixedByRestartTest, ResultsAndStopsAreNotFailures) {
  for (int status : {0, 1, 75})
    EXPECT_FALSE(MayBeFixedByRestart({.kind = Kind::kAnswer, .exit_status = status}));
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) EXPECT_FALSE(MayBeFixedByRestart(StoppedBy(signal)));
  LaunchResult after_request = Failure(69, 1);
  after_request.stop_requested = true;
  EXPECT_FALSE(MayBeFixedByRestart(after_request));
}

TEST(NextAttemptTest, UsesTheRemainingWorkers) {
  const struct {
    int asked, min_workers, workers, died, expected;
  } cases[] = {
      {4, 1, 4, 1, 3},    // one worker is lost
      {4, 1, 4, 2, 2},    // two are lost
      {4, 1, 4, 0, 3},    // no known death: counts as one lost
      {4, 1, 3, 1, 2},    // again
      {4, 3, 4, 2, 3},    // never fewer than min_workers
      {4, 3, 3, 1, 3},    // the lost one is replaced
      {4, 0, 4, 1, 4},    // 0: as many as requested
      {4, 0, 4, 4, 4},    //
      {4, 9, 4, 1, 4},    // never more than requested
      {2, 1, 1, 1, 1},    // the last one is restarted
      {64, 1, 64, 64, 1}  // all died
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << "asked " << c.asked << ", min " << c.min_workers << ", had "
                                    << c.workers << ", died " << c.died);
    const auto next = NextAttempt({.min_workers = c.min_workers, .max_restarts = 1}, c.asked,
                                  {.workers = c.workers}, Failure(69, c.died));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->workers, c.expected);
    EXPECT_EQ(next->restart, 1);
  }
}

TEST(NextAttemptTest, NeverHasFewerWorkersThanMemoryAllows) {
  ElasticOptions options{.min_workers = 1, .max_restarts = 1};
  const Attempt last = {.workers = 4};
  LaunchResult killed = Failure(69, 1);
  EXPECT_EQ(NextAttempt(options, 4, last, killed)->workers, 3);
  killed.out_of_memory = true;
  EXPECT_EQ(NextAttempt(options, 4, last, killed)->workers, 4);
  options.sharded = false;
  EXPECT_EQ(NextAttempt(options, 4, last, killed)->workers, 3);
  options.fits = [](int workers) { return workers >= 3; };
  EXPECT_EQ(NextAttempt(options, 4, last, Failure(69, 1))->workers, 3);
  EXPECT_EQ(NextAttempt(options, 4, last, Failure(69, 2))->workers, 4);
}

TEST(NextAttemptTest, TheWaitDoublesUpToAMinute) {
  const auto wait = [](double backoff, int restart) {
    return NextAttempt({.max_restarts = 1 << 30, .backoff_seconds = backoff}, 2,
                       {.workers = 2, .restart = restart}, Failure(69))
        ->wait_seconds;
  };
  EXPECT_EQ(wait(1, 0), 1);
  EXPECT_EQ(wait(1, 1), 2);
  EXPECT_EQ(wait(0.5, 3), 4);
  EXPECT_EQ(wait(1, 5), 32);
  EXPECT_EQ(wait(1, 6), 60);
  EXPECT_EQ(wait(1, 1 << 29), 60);
  EXPECT_EQ(wait(100, 0), 60);
  EXPECT_EQ(wait(0, 1 << 29), 0);
}

TEST(NextAttemptTest, NoMoreRestartsThanAllowed) {
  const auto next = [](int max_restarts, int restart) {
    return NextAttempt({.max_restarts = max_restarts}, 2, {.workers = 2, .restart = restart},
                       Failure(74));
  };
  EXPECT_FALSE(next(0, 0));
  EXPECT_TRUE(next(2, 1));
  EXPECT_FALSE(next(2, 2));
}

TEST(GrowAfterTest, LaterEachTimeAndWhileAFailureIsNotTheEnd) {
  const ElasticOptions options = {.max_restarts = 3, .grow_after_seconds = 600};
  EXPECT_EQ(GrowAfter(options, 4, {.workers = 4}), 0);
  EXPECT_EQ(GrowAfter(options, 4, {.workers = 3, .restart = 1}), 600);
  EXPECT_EQ(GrowAfter(options, 4, {.workers = 3, .restart = 2, .grown = 1}), 1200);
  EXPECT_EQ(GrowAfter(options, 4, {.workers = 3, .restart = 3, .grown = 2}), 0);
  EXPECT_EQ(GrowAfter({.max_restarts = 3}, 4, {.workers = 3, .restart = 1}), 0);
}

TEST(NextAttemptTest, GrowingIsNoFailure) {
  const ElasticOptions options = {.min_workers = 1, .max_restarts = 1, .grow_after_seconds = 1};
  const Attempt shrunk = {.workers = 2, .restart = 1, .grown = 1};
  const auto next = NextAttempt(options, 4, shrunk, {.kind = Kind::kGrowing, .exit_status = 75});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->workers, 4);
  EXPECT_EQ(next->restart, 1);
  EXPECT_EQ(next->grown, 2);
  EXPECT_EQ(next->wait_seconds, 0);
  EXPECT_FALSE(NextAttempt(options, 4, *next, Failure(69, 1)));
}

class RunElasticTest : public testing::Test {
 protected:
  // Attempts end with `results`; the last one repeats.
  int Run(const ElasticOptions& options, int workers, const std::vector<LaunchResult>& results) {
    testing::internal::CaptureStderr();
    const ElasticResult result =
        RunElastic(options, workers, signals_, [&](const Attempt& attempt) {
          worlds_.push_back(attempt.workers);
          restarts_.push_back(attempt.restart);
          return results[std::min(worlds_.size(), results.size()) - 1];
        });
    output_ = testing::internal::GetCapturedStderr();
    EXPECT_EQ(result.restarts, restarts_.back());
    return result.last.exit_status;
  }

  const SignalQueue signals_{LaunchSignals()};
  std::vector<int> worlds_, restarts_;
  std::string output_;
};

TEST_F(RunElasticTest, ContinuesWithFewerWorkersUntilItSucceeds) {
  EXPECT_EQ(Run({.min_workers = 2, .max_restarts = 9, .backoff_seconds = 0.001}, 4,
                {Failure(69, 1), Failure(74, 1), Failure(71, 1), LaunchResult{}}),
            0);
  EXPECT_THAT(worlds_, ElementsAre(4, 3, 2, 2));
  EXPECT_THAT(restarts_, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(output_,
            "worker 1 failed: restarting with 3 workers in 0.001 s (restart 1 of 9)\n"
            "worker 1 failed: restarting with 2 workers in 0.002 s (restart 2 of 9)\n"
            "worker 1 failed: restarting with 2 workers in 0.004 s (restart 3 of 9)\n");
}

TEST_F(RunElasticTest, GrowsAgain) {
  EXPECT_EQ(Run({.min_workers = 2, .max_restarts = 9, .backoff_seconds = 0}, 4,
                {Failure(69, 2),
                 {.kind = Kind::kGrowing, .exit_status = 75},
                 Failure(74, 1),
                 {.kind = Kind::kGrowing, .exit_status = 75},
                 LaunchResult{}}),
            0);
  EXPECT_THAT(worlds_, ElementsAre(4, 2, 4, 3, 4));
  EXPECT_THAT(output_, HasSubstr("growing from 2 to 4 workers\n"));
}

TEST_F(RunElasticTest, SaysThatRestartsAreUsedUp) {
  EXPECT_EQ(Run({.max_restarts = 2, .backoff_seconds = 0}, 2, {Failure(71), Failure(74)}), 74);
  EXPECT_THAT(worlds_, ElementsAre(2, 2, 2));
  EXPECT_THAT(output_,
              HasSubstr("error: worker 1 failed; no restart is left after 2 restarts: find out why "
                        "the workers fail, or raise elastic.max_restarts"));
}

TEST_F(RunElasticTest, WithoutRestartsTheyAreNotMentioned) {
  EXPECT_EQ(Run({}, 2, {Failure(69)}), 69);
  EXPECT_EQ(output_, "error: worker 1 failed; the other workers were stopped\n");
}

TEST_F(RunElasticTest, AResultIsReturnedSilently) {
  EXPECT_EQ(Run({.max_restarts = 2}, 2, {{.exit_status = 75}}), 75);
  EXPECT_EQ(output_, "");
}

TEST_F(RunElasticTest, ASignalEndsTheWaitImmediately) {
  const struct {
    int signal, status;
    const char* line;
  } cases[] = {{SIGTERM, 75, "stopped by signal 15 (Terminated)\n"},
               {SIGHUP, 75, "stopped by signal 1 (Hangup)\n"},
               {SIGINT, 130, "stopped by signal 2 (Interrupt)\n"}};
  for (const auto& c : cases) {
    worlds_.clear();
    const auto begin = steady_clock::now();
    std::thread sender([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(getpid(), SIGCHLD);  // ignored here
      kill(getpid(), c.signal);
    });
    EXPECT_EQ(Run({.max_restarts = 1, .backoff_seconds = 30}, 2, {Failure(69), LaunchResult{}}),
              c.status);
    sender.join();
    EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(10));
    EXPECT_THAT(worlds_, ElementsAre(2));
    EXPECT_THAT(output_, HasSubstr(c.line));
  }
}

TEST_F(RunElasticTest, ASignalBeforeTheWaitIsNotLost) {
  kill(getpid(), SIGTERM);
  EXPECT_EQ(Run({.max_restarts = 1, .backoff_seconds = 0}, 2, {Failure(69), LaunchResult{}}), 75);
  EXPECT_THAT(worlds_, ElementsAre(2));
}

}  // namespace
}  // namespace renzan
