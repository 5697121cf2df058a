#include "renzan/cluster/local/server/explain_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <utility>

namespace renzan::cluster::local {
namespace {

bool Never() { return false; }
bool Now() { return true; }

TEST(ExplainGate, AdmitsOnePerUserAndAFewInTotal) {
  ExplainGate gate(2);
  const auto ann = gate.Enter(1, Never);
  EXPECT_TRUE(ann);
  EXPECT_FALSE(gate.Enter(1, Now));
  {
    const auto bob = gate.Enter(2, Now);  // `cancelled` is not called if a slot is free
    EXPECT_TRUE(bob);
    EXPECT_FALSE(gate.Enter(3, Now));
  }
  EXPECT_TRUE(gate.Enter(3, Now));
}

TEST(ExplainGate, AWaitingUserGetsAFreedSlot) {
  ExplainGate gate(1);
  std::promise<void> waits;
  std::future<bool> bob;
  {
    const auto ann = gate.Enter(1, Never);
    bob = std::async(std::launch::async, [&] {
      bool asked = false;
      return static_cast<bool>(gate.Enter(2, [&] {
        if (!std::exchange(asked, true)) waits.set_value();
        return false;
      }));
    });
    waits.get_future().wait();
  }
  EXPECT_TRUE(bob.get());
}

}  // namespace
}  // namespace renzan::cluster::local
