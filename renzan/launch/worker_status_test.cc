#include "renzan/launch/worker_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using testing::ElementsAre;

constexpr WorkerProgram kPrograms[] = {WorkerProgram::kRenzan, WorkerProgram::kAny};

std::vector<int> StatusesOf(const std::function<bool(int)>& property) {
  std::vector<int> statuses;
  for (int status = 0; status < 256; ++status)
    if (property(status)) statuses.push_back(status);
  return statuses;
}

TEST(WorkerStatusTest, OneIsAnAnswerOfThisProgramOnly) {
  EXPECT_THAT(StatusesOf([](int s) { return IsAnswer(WorkerProgram::kRenzan, s); }),
              ElementsAre(0, 1, 75));
  EXPECT_THAT(StatusesOf([](int s) { return IsAnswer(WorkerProgram::kAny, s); }),
              ElementsAre(0, 75));
}

TEST(WorkerStatusTest, WhatHasAMeaningIsNoLostPeer) {
  EXPECT_THAT(StatusesOf([](int s) { return MayHaveLostPeer(WorkerProgram::kRenzan, s); }),
              ElementsAre(69));
  EXPECT_THAT(StatusesOf([](int s) { return !MayHaveLostPeer(WorkerProgram::kAny, s); }),
              ElementsAre(0, 2, 64, 65, 66, 67, 68, 70, 71, 72, 73, 74, 75, 76, 77, 78, 126, 127));
}

TEST(WorkerStatusTest, EveryStatusIsOneThing) {
  const auto is_machine_failure = [](int s) { return IsMachineFailure(ErrorCode{s}); };
  EXPECT_THAT(StatusesOf(is_machine_failure), ElementsAre(71, 74));
  for (const WorkerProgram program : kPrograms)
    for (int status = 0; status < 256; ++status)
      EXPECT_LE(
          IsAnswer(program, status) + MayHaveLostPeer(program, status) + is_machine_failure(status),
          1)
          << status;
}

}  // namespace
}  // namespace renzan
