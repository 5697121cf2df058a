#include "renzan/cluster/kubernetes/process/line_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/process/change_queue.h"

namespace renzan::cluster::kubernetes {
namespace {

TEST(LineFile, AppendsToWhatIsThere) {
  const TemporaryDirectory directory;
  LineFile(directory / "log").Append("one\n");
  LineFile file(directory / "log");
  file.Append("two\nthree\n");
  file.Append("");
  EXPECT_EQ(ReadFile(directory / "log"), "one\ntwo\nthree\n");
}

TEST(LineFile, SaysThatItCannotWrite) {
  try {
    const LineFile file("/no/such/directory/log");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_THAT(error.what(), testing::HasSubstr("/no/such/directory/log"));
  }
  // The scheduler continues, and one warning is logged.
  LineFile full("/dev/full");
  testing::internal::CaptureStderr();
  full.Append("one\n");
  full.Append("two\n");
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, testing::HasSubstr("cannot write /dev/full: No space left on device"));
  EXPECT_EQ(told.find("cannot write"), told.rfind("cannot write"));
}

TEST(ChangeQueue, TellsHowLongTheFirstHasWaited) {
  ManualClock clock;
  ChangeQueue queue(clock);
  const auto put = [&] { queue.Put(Source::kPods, {WatchChange::Type::kDeleted, nullptr}); };
  put();
  clock.seconds += 2;
  put();
  clock.seconds += 1;
  EXPECT_EQ(queue.Take().size(), 2u);
  EXPECT_DOUBLE_EQ(queue.delay_seconds(), 3);
  EXPECT_TRUE(queue.Take().empty());
  EXPECT_EQ(queue.delay_seconds(), 0);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
