#include "renzan/cluster/core/predict/run_times.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace renzan::cluster {
namespace {

constexpr RunTimeQuantiles kUnknown{};
constexpr size_t kMedian = 2;

JobTraits Ann(const std::string& name = "train") { return {"research", "ann", name, 8}; }
JobTraits Bob() { return {"research", "bob", "train", 8}; }

void AddMany(RunTimes& times, const JobTraits& traits, TimeMs ran, int jobs) {
  for (int job = 0; job < jobs; ++job) times.Add(traits, ran);
}

// Within the half-octave bin.
void ExpectNear(TimeMs predicted, TimeMs expected) {
  EXPECT_GT(static_cast<double>(predicted), 0.7 * static_cast<double>(expected));
  EXPECT_LT(static_cast<double>(predicted), 1.5 * static_cast<double>(expected));
}

TEST(RunTimes, NothingIsKnownUntilAFewJobsHaveEnded) {
  RunTimes times;
  AddMany(times, Ann(), kHour, 9);
  EXPECT_EQ(times.Predict(Ann()), kUnknown);
  AddMany(times, Ann(), kHour, 2);
  ExpectNear(times.Predict(Ann())[kMedian], kHour);
}

TEST(RunTimes, QuantilesAreThoseOfTheJobsThatEnded) {
  RunTimes times;
  // Evenly spread over 16 octaves, in an order without trend.
  for (int job = 0; job < 2000; ++job) times.Add(Ann(), kSecond << (job * 7919 % 16));
  const RunTimeQuantiles quantiles = times.Predict(Ann());
  EXPECT_TRUE(std::is_sorted(quantiles.begin(), quantiles.end()));
  for (size_t i = 0; i < quantiles.size(); ++i) {
    int ended = 0;
    for (int octave = 0; octave < 16; ++octave) ended += (kSecond << octave) <= quantiles[i];
    EXPECT_NEAR(ended / 16.0, kQuantiles[i], 2.0 / 16) << i;
  }
}

TEST(RunTimes, AKindWithoutHistoryIsPredictedLikeTheMoreGeneralOne) {
  RunTimes times;
  AddMany(times, Ann(), 10 * kHour, 100);
  ExpectNear(times.Predict(Bob())[kMedian], 10 * kHour);
  AddMany(times, Bob(), kMinute, 100);
  ExpectNear(times.Predict(Bob())[kMedian], kMinute);
  ExpectNear(times.Predict(Ann())[kMedian], 10 * kHour);
}

TEST(RunTimes, ProgramsOfAUserDifferButTheirRunsDoNot) {
  RunTimes times;
  AddMany(times, Ann("train-2026-11-23"), 10 * kHour, 50);
  AddMany(times, Ann("eval-1"), kMinute, 50);
  ExpectNear(times.Predict(Ann("eval-2"))[kMedian], kMinute);
  ExpectNear(times.Predict(Ann("train-2026-11-24"))[kMedian], 10 * kHour);
}

TEST(RunTimes, WhatEndedLastWeighsMost) {
  RunTimes times;
  AddMany(times, Ann(), 10 * kHour, 500);
  AddMany(times, Ann(), kMinute, 25);
  ExpectNear(times.Predict(Ann())[kMedian], kMinute);
}

TEST(RunTimes, TheLastGenerationsSufficeToRestoreIt) {
  const auto traits = [](int64_t job) {
    return JobTraits{"queue", fmt::format("user {}", job % 7), fmt::format("job {}", job % 3), 8};
  };
  const auto add = [&](RunTimes& times, int64_t job) {
    times.Add(traits(job), kSecond << (job * 7919 % 16));
  };
  constexpr int64_t kGeneration = RunTimes::kGeneration;
  RunTimes whole;
  int64_t added = 0;
  for (const int64_t jobs :
       {kGeneration / 2, kGeneration, kGeneration + 9, 2 * kGeneration, 3 * kGeneration + 1}) {
    while (added < jobs) add(whole, added++);
    RunTimes restored;
    for (int64_t job = RunTimes::FirstKnown(jobs); job < jobs; ++job) add(restored, job);
    EXPECT_LE(jobs - RunTimes::FirstKnown(jobs), 2 * kGeneration);
    for (int64_t job = 0; job < 21; ++job)
      EXPECT_EQ(restored.Predict(traits(job)), whole.Predict(traits(job))) << jobs << " " << job;
  }
}

TEST(RunTimes, WhatEndedLongAgoIsForgotten) {
  RunTimes times;
  AddMany(times, Bob(), kMinute, 100);
  AddMany(times, Ann(), 10 * kHour, 2 * RunTimes::kGeneration - 101);
  ExpectNear(times.Predict(Bob())[kMedian], kMinute);
  times.Add(Ann(), 10 * kHour);
  ExpectNear(times.Predict(Bob())[kMedian], 10 * kHour);
}

TEST(LikelyRemaining, IsTheMedianOfTheJobsThatHaveRunForAsLong) {
  const RunTimeQuantiles quantiles = {kMinute, kHour, 4 * kHour, 16 * kHour, 32 * kHour};
  EXPECT_EQ(LikelyRemaining(quantiles, 0), 4 * kHour);
  // Half have ended; a quarter more by 16 h.
  EXPECT_EQ(LikelyRemaining(quantiles, 4 * kHour), 12 * kHour);
  // Three quarters have ended; the median of the rest is between 16 h and 32 h.
  const TimeMs rest = LikelyRemaining(quantiles, 16 * kHour);
  EXPECT_GT(rest, 0);
  EXPECT_LT(rest, 16 * kHour);
}

TEST(LikelyRemaining, IsAsLongAgainWhereNothingIsKnown) {
  EXPECT_EQ(LikelyRemaining(kUnknown, 3 * kHour), 3 * kHour);
  EXPECT_EQ(LikelyRemaining(kUnknown, 0), kMinute);
  const RunTimeQuantiles quantiles = {kMinute, kHour, 4 * kHour, 16 * kHour, 32 * kHour};
  EXPECT_EQ(LikelyRemaining(quantiles, 40 * kHour), 40 * kHour);
}

TEST(LikelyRemaining, IsPositiveForAnyAge) {
  const RunTimeQuantiles quantiles = {kMinute, kMinute, kHour, kHour, 2 * kHour};
  for (TimeMs ran = 0; ran < 5 * kHour; ran += kMinute / 2)
    EXPECT_GT(LikelyRemaining(quantiles, ran), 0) << ran;
}

}  // namespace
}  // namespace renzan::cluster
