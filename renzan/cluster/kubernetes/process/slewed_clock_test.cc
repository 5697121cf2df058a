#include "renzan/cluster/kubernetes/process/slewed_clock.h"

#include <gtest/gtest.h>

namespace renzan::cluster::kubernetes {
namespace {

class TwoTimes : public Clock {
 public:
  double MonotonicSeconds() const override { return elapsed; }
  double UnixSeconds() const override { return 1e9 + elapsed + ahead; }
  double elapsed = 0, ahead = 0;
};

TEST(SlewedClock, FollowsAClockThatRuns) {
  TwoTimes machine;
  const SlewedClock clock(machine);
  for (int i = 0; i < 100; ++i) {
    machine.elapsed += 0.1 * i;
    EXPECT_NEAR(clock.UnixSeconds(), machine.UnixSeconds(), 1e-6);
    EXPECT_EQ(clock.MonotonicSeconds(), machine.elapsed);
  }
}

TEST(SlewedClock, DoesNotJumpAndGetsThereAllTheSame) {
  for (const double jump : {3600.0, -3600.0}) {
    TwoTimes machine;
    const SlewedClock clock(machine);
    machine.ahead = jump;
    EXPECT_NEAR(clock.UnixSeconds(), 1e9, 1e-6);
    double before = clock.UnixSeconds();
    for (int i = 0; i < 100; ++i) {
      machine.elapsed += 60;
      const double now = clock.UnixSeconds();
      EXPECT_NEAR(now - before, 60, 60 * SlewedClock::kSlew + 1e-6);
      before = now;
    }
    EXPECT_NEAR(before, machine.UnixSeconds() - jump + (jump > 0 ? 600 : -600), 1e-3);
    machine.elapsed += 10 * 3600;
    EXPECT_NEAR(clock.UnixSeconds(), machine.UnixSeconds(), 1e-3);
  }
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
