#include "renzan/cluster/core/engine/suspicion.h"

#include <gmock/gmock.h>

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr TimeMs kToday = 100 * kHour;

EarlyFailure Failure(JobId job, const std::string& node, const std::string& user,
                     TimeMs time = kToday) {
  return {.job = job, .node = node, .user = user, .time = time};
}

TEST(Suspicion, JobsOfSeveralUsersSuspectANode) {
  Suspicion suspicion;
  suspicion.Failed(Failure(1, "n0", "ann"));
  suspicion.Failed(Failure(2, "n0", "ann"));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
  suspicion.Failed(Failure(3, "n0", "bob"));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday),
            "3 jobs of 2 users failed there soon after their start");
  EXPECT_EQ(suspicion.WhySuspected("n1", kToday), "");
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday + 2 * kHour), "");
}

// A user who tries a broken program again and again does not take the cluster down.
TEST(Suspicion, OneUsersJobsCountOnlyIfTheyRanElsewhere) {
  Suspicion suspicion;
  for (JobId job = 1; job <= 40; ++job) suspicion.Failed(Failure(job, "n0", "ann"));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
  for (JobId job = 1; job <= 2; ++job) suspicion.RanWell(job, {"n1"}, kToday);
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
  EXPECT_THAT(suspicion.RanWell(3, {"n1"}, kToday), SizeIs(1));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday),
            "3 jobs failed there soon after their start, and then ran elsewhere");
}

TEST(Suspicion, AJobThatFailsEverywhereCountsAgainstNoNode) {
  Suspicion suspicion;
  suspicion.Failed(Failure(1, "n0", "ann"));
  suspicion.Failed(Failure(2, "n0", "bob"));
  suspicion.Failed(Failure(3, "n0", "cid"));
  EXPECT_THAT(suspicion.Failed(Failure(3, "n1", "cid")), SizeIs(2));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
  // Both were at fault.
  suspicion.RanWell(3, {"n2"}, kToday);
  EXPECT_NE(suspicion.WhySuspected("n0", kToday), "");
}

TEST(Suspicion, ANodeThatRunsAJobWellIsNotSuspected) {
  Suspicion suspicion;
  for (JobId job = 1; job <= 3; ++job)
    suspicion.Failed(Failure(job, "n0", job == 1 ? "ann" : "bob"));
  suspicion.RanWell(9, {"n0", "n1"}, kToday);
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
  // Unless the failures have been shown to be its fault: only one of its devices may be broken.
  for (JobId job = 1; job <= 3; ++job) suspicion.RanWell(job, {"n1"}, kToday);
  suspicion.RanWell(9, {"n0"}, kToday);
  EXPECT_NE(suspicion.WhySuspected("n0", kToday), "");
  EXPECT_THAT(suspicion.Absolve("n0"), SizeIs(3));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
}

TEST(Suspicion, AJobThatRanBeforeTheFailuresDoesNotClearTheNode) {
  Suspicion suspicion;
  for (JobId job = 1; job <= 3; ++job)
    suspicion.Failed(Failure(job, "n0", job == 1 ? "ann" : "bob"));
  EXPECT_THAT(suspicion.RanWell(9, {"n0"}, kToday - 1), IsEmpty());
  EXPECT_NE(suspicion.WhySuspected("n0", kToday), "");
  EXPECT_THAT(suspicion.RanWell(9, {"n0"}, kToday), SizeIs(3));
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
}

// The suspected time is over, and then the jobs run elsewhere. Also after a restart.
TEST(Suspicion, WhatANodeIsAbsolvedOfNeverCountsAgain) {
  Suspicion suspicion, restarted;
  for (JobId job = 1; job <= 3; ++job) suspicion.Failed(Failure(job, "n0", "ann"));
  for (const EarlyFailure& failure : suspicion.Absolve("n0")) restarted.Restore(failure);
  for (Suspicion* each : {&suspicion, &restarted}) {
    EXPECT_TRUE(each->Knows(1));
    for (JobId job = 1; job <= 3; ++job) EXPECT_THAT(each->RanWell(job, {"n1"}, kToday), IsEmpty());
    EXPECT_EQ(each->WhySuspected("n0", kToday), "");
    EXPECT_THAT(each->Absolve("n0"), IsEmpty());
    // What fails there afterwards does.
    for (JobId job = 4; job <= 6; ++job) each->Failed(Failure(job, "n0", "ann"));
    for (JobId job = 4; job <= 6; ++job) each->RanWell(job, {"n1"}, kToday);
    EXPECT_EQ(each->WhySuspected("n0", kToday),
              "3 jobs failed there soon after their start, and then ran elsewhere");
  }
}

// Without retries, others that started at the same time tell whose fault it is.
TEST(Suspicion, OneUsersJobsThatRunElsewhereMeanwhileSuspectANode) {
  Suspicion suspicion;
  for (JobId job = 1; job <= 3; ++job) suspicion.Failed(Failure(job, "n0", "ann"));
  suspicion.Survived(11, "ann", "n1", kToday - kSecond);
  suspicion.Survived(12, "ann", "n1", kToday - kSecond);
  suspicion.Survived(13, "ann", "n2", kToday - kHour / 2);  // of another time
  suspicion.Survived(14, "bob", "n2", kToday - kSecond);    // of another user
  EXPECT_EQ(suspicion.WhySuspected("n0", kToday), "");
  suspicion.Survived(15, "ann", "n2", kToday - kSecond);
  EXPECT_EQ(
      suspicion.WhySuspected("n0", kToday),
      "3 jobs of user ann failed there soon after their start, while 3 other jobs ran elsewhere");
  Suspicion runs_some = suspicion, fails_elsewhere = suspicion;
  runs_some.Survived(16, "bob", "n0", kToday);
  EXPECT_EQ(runs_some.WhySuspected("n0", kToday), "");
  fails_elsewhere.Failed(Failure(17, "n1", "ann"));
  EXPECT_EQ(fails_elsewhere.WhySuspected("n0", kToday), "");
}

TEST(Suspicion, AUsersJobsFailOnANodeWhereNoneSurvives) {
  Suspicion suspicion;
  for (JobId job = 1; job <= 5; ++job) {
    EarlyFailure failure = Failure(job, "n0", "ann", kToday + job * kSecond);
    failure.started = failure.time - kSecond;
    suspicion.Failed(failure);
    EXPECT_THAT(suspicion.FailingFor("ann", failure.time), SizeIs(job < 3 ? 0 : 1));
  }
  const TimeMs now = kToday + kMinute;
  const std::vector<FailingNode> failing = {
      {.node = "n0", .jobs = 5, .since = kToday + 3 * kSecond, .latest = kToday + 5 * kSecond}};
  EXPECT_EQ(suspicion.FailingFor("ann", now), failing);
  EXPECT_THAT(suspicion.FailingFor("bob", now), IsEmpty());
  EXPECT_THAT(suspicion.FailingFor("ann", kToday + kHour + 4 * kSecond), IsEmpty());
  // Of others, elsewhere, or from before it broke.
  suspicion.Survived(11, "bob", "n0", now);
  suspicion.Survived(12, "ann", "n1", now);
  suspicion.Survived(13, "ann", "n0", kToday - 1);
  EXPECT_EQ(suspicion.FailingFor("ann", now), failing);
  suspicion.Survived(14, "ann", "n0", kToday + 2 * kSecond);  // as the third started
  EXPECT_THAT(suspicion.FailingFor("ann", now), IsEmpty());
}

TEST(Suspicion, JobsThatFailOnSeveralNodesFailOnNone) {
  Suspicion suspicion;
  for (JobId job = 1; job <= 3; ++job) suspicion.Failed(Failure(job, "n0", "ann"));
  suspicion.Failed(Failure(3, "n1", "ann"));
  EXPECT_THAT(suspicion.FailingFor("ann", kToday), IsEmpty());
  suspicion.RanWell(3, {"n2"}, kToday);
  EXPECT_THAT(suspicion.FailingFor("ann", kToday), SizeIs(1));
  suspicion.Absolve("n0");
  EXPECT_THAT(suspicion.FailingFor("ann", kToday), IsEmpty());
}

TEST(Suspicion, OldFailuresAreForgotten) {
  Suspicion suspicion;
  suspicion.Restore(Failure(1, "n0", "ann", kToday - 2 * kHour));
  suspicion.Restore(Failure(2, "n0", "ann"));
  EXPECT_THAT(suspicion.OldJobs(kToday), ElementsAre(1));
  suspicion.ForgetJob(1);
  EXPECT_FALSE(suspicion.Knows(1));
  EXPECT_TRUE(suspicion.Knows(2));
  suspicion.ForgetNode("n0");
  EXPECT_FALSE(suspicion.Knows(2));
}

}  // namespace
}  // namespace renzan::cluster
