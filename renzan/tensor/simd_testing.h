#pragma once

// For tests of kernels with Highway dispatch.

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace renzan::testing {

// Calls body() once for each instruction set of this machine, dispatching to that one only.
template <class Body>
void OnEveryInstructionSet(const Body& body) {
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace renzan::testing
