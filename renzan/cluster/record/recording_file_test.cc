#include "renzan/cluster/record/recording_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/record/record_testing.h"

namespace renzan::cluster::record {
namespace {

int CyclesIn(const std::string& path) {
  int cycles = 0;
  ReadRecording(path, [&](const RecordingHeader&, const Cycle&) { ++cycles; });
  return cycles;
}

TEST(RecordingFile, FollowsTheRecorderAndKeepsTheLastOne) {
  const TemporaryDirectory directory;
  const std::string path = directory / "cycles";
  Recorder recorder({.idle_interval_ms = 0});
  const auto take = [&] {
    WithView(CycleOn(Snapshot()), [&](const CycleView& view) { recorder.Take(view); });
  };
  {
    // So long that only the destructor can write it.
    const RecordingFile file(path, recorder, /*interval_seconds=*/3600);
    EXPECT_EQ(CyclesIn(path), 0);
    take();
    take();
  }
  EXPECT_EQ(CyclesIn(path), 2);
  const RecordingFile file(path, recorder, /*interval_seconds=*/0.01);
  EXPECT_EQ(CyclesIn(path + ".1"), 2);
  take();
  while (CyclesIn(path) < 3) std::this_thread::yield();
}

TEST(RecordingFile, SaysAtOnceThatItCannotWrite) {
  const Recorder recorder({});
  try {
    const RecordingFile file("/no/such/directory/cycles", recorder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate) << error.what();
  }
}

}  // namespace
}  // namespace renzan::cluster::record
