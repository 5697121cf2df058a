#include "renzan/cluster/backend/absence.h"

#include <gtest/gtest.h>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

TEST(Absence, LastsAMinuteFromItsBeginning) {
  ManualClock clock;
  Absence absence({clock, [](double) {}}, "the output of job 7");
  absence.Wait("gone", false, 0);
  clock.seconds += 50;
  absence.Wait("gone", false, 0);
  clock.seconds += 11;
  EXPECT_THROW(absence.Wait("gone", false, 0), Error);
  absence.Wait("gone", /*more=*/true, 0);
  clock.seconds += 61;
  absence.Wait("gone", false, /*lasted_seconds=*/50);
  clock.seconds += 61;
  absence.Over();
  absence.Wait("gone", false, 0);
  clock.seconds += 61;
  EXPECT_THROW(absence.Wait("gone", false, 0), Error);
}

}  // namespace
}  // namespace renzan::cluster
