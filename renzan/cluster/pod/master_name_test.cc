#include "renzan/cluster/pod/master_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>

#include "renzan/base/error.h"

namespace renzan::cluster::pod {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// In all tests: the thread of a look-up may outlive its test, and a signal that it does not block
// would end the program.
const std::vector<int> kSignals = {SIGTERM, SIGUSR1};

constexpr MasterWait kPatient = {.limit_seconds = 1000, .seconds_between_lookups = 0.001};

TEST(MasterName, IsWaitedFor) {
  const SignalQueue signals(kSignals);
  std::atomic<int> lookups = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(WaitForMaster(
                "towers-0", kPatient,
                [&](const std::string& name) {
                  EXPECT_EQ(name, "towers-0");
                  return ++lookups < 5 ? "Name or service not known" : "";
                },
                signals),
            0);
  EXPECT_EQ(lookups, 5);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, StartsWith("waiting until MASTER_ADDR 'towers-0' resolves ("));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(MasterName, NeedsNoWordIfItResolves) {
  const SignalQueue signals(kSignals);
  testing::internal::CaptureStderr();
  EXPECT_EQ(WaitForMaster("127.0.0.1", {}, SystemResolve, signals), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(SystemResolve("no name at all"), "");
}

TEST(MasterName, IsNotWaitedForForEver) {
  const SignalQueue signals(kSignals);
  // A name server that answers, and one that does not.
  const auto asked = std::make_shared<std::promise<std::string>>();
  const std::shared_future<std::string> never(asked->get_future());
  const ResolveName unknown = [](const std::string&) { return "unknown name"; };
  const ResolveName silent = [never](const std::string&) { return never.get(); };
  for (const ResolveName& resolve : {unknown, silent}) {
    try {
      WaitForMaster("towers-0", {.limit_seconds = 0.05, .seconds_between_lookups = 0.01}, resolve,
                    signals);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      EXPECT_THAT(error.what(), HasSubstr("MASTER_ADDR 'towers-0' does not resolve after 0.05 s"));
    }
  }
  asked->set_value("");  // its thread ends
}

TEST(MasterName, AStopRequestEndsTheWaiting) {
  const SignalQueue signals(kSignals);
  const auto asked = std::make_shared<std::promise<std::string>>();
  const std::shared_future<std::string> never(asked->get_future());
  std::atomic<int> lookups = 0;
  // The first look-up fails, the second never ends.
  EXPECT_EQ(WaitForMaster(
                "towers-0", kPatient,
                [&, never](const std::string&) -> std::string {
                  if (++lookups == 1) return "unknown name";
                  kill(getpid(), SIGUSR1);
                  kill(getpid(), SIGTERM);
                  return never.get();
                },
                signals),
            SIGTERM);
  asked->set_value("");
}

}  // namespace
}  // namespace renzan::cluster::pod
