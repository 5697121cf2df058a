#include "renzan/cluster/backend/absence.h"

#include <gtest/gtest.h>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

class AbsenceTest : public testing::Test {
 protected:
  void Passes(double seconds) { clock_.seconds += seconds; }
  void Nobody() { absence_.Wait("gone", {}); }

  ManualClock clock_;
  Absence absence_{{clock_, [](double) {}}, "the output of job 7"};
};

TEST_F(AbsenceTest, LastsAMinuteFromItsBeginning) {
  Nobody();
  Passes(50);
  Nobody();
  Passes(11);
  EXPECT_THROW(Nobody(), Error);
}

TEST_F(AbsenceTest, BeginsAnewOnceSomebodyHasAnswered) {
  Nobody();
  Passes(55);
  absence_.Wait("gone", {.answered = true});
  Passes(55);
  Nobody();
  Passes(55);
  absence_.Wait("gone", {.answered = true, .more = true});
  Passes(55);
  absence_.Over();
  Passes(55);
  Nobody();
  Passes(61);
  EXPECT_THROW(Nobody(), Error);
}

TEST_F(AbsenceTest, EndsIfWhoeverAnswersHangsUpAgainAndAgain) {
  for (int times = 0; times < 20; ++times) absence_.Wait("gone", {.answered = true});
  absence_.Wait("gone", {.answered = true, .seconds = 11});
  for (int times = 0; times < 20; ++times) absence_.Wait("gone", {.answered = true});
  EXPECT_THROW(absence_.Wait("gone", {.answered = true}), Error);
}

}  // namespace
}  // namespace renzan::cluster
