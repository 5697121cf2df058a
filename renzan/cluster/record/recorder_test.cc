#include "renzan/cluster/record/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/record/cycle_json.h"
#include "renzan/cluster/record/record_testing.h"

namespace renzan::cluster::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The first random cycle after `seed` that decides anything.
Cycle Deciding(uint64_t seed, int64_t number) {
  for (;; ++seed) {
    Cycle cycle = RandomCycle(seed);
    cycle.number = number;
    if (Decides(cycle.snapshot, cycle.decisions)) return cycle;
  }
}

Cycle Idle(TimeMs now, int64_t number) {
  Snapshot snapshot;
  snapshot.now = now;
  return CycleOn(snapshot, number);
}

void Take(Recorder& recorder, const Cycle& cycle) {
  WithView(cycle, [&](const CycleView& view) { recorder.Take(view); });
}

std::vector<Cycle> Read(const std::string& recording) {
  const TemporaryDirectory directory;
  WriteFileAtomically(directory / "r", recording);
  std::vector<Cycle> cycles;
  ReadRecording(directory / "r",
                [&](const RecordingHeader&, Cycle cycle) { cycles.push_back(std::move(cycle)); });
  return cycles;
}

std::vector<int64_t> Numbers(const std::string& recording) {
  std::vector<int64_t> numbers;
  for (const Cycle& cycle : Read(recording)) numbers.push_back(cycle.number);
  return numbers;
}

TEST(Recorder, KeepsWhatDecidesAndLittleElse) {
  Recorder recorder({.program = "renzan 1", .writer = "me"});
  EXPECT_THAT(Numbers(recorder.Recording()), ElementsAre());
  const Cycle first = Deciding(0, 1);
  Take(recorder, first);
  const TimeMs now = first.snapshot.now;
  Take(recorder, Idle(now + 1, 2));
  Take(recorder, Idle(now + kMinute, 3));
  Take(recorder, Idle(now + kMinute + 1, 4));
  Take(recorder, Deciding(50, 5));
  const std::string recording = recorder.Recording();
  EXPECT_THAT(Numbers(recording), ElementsAre(1, 3, 5));
  EXPECT_EQ(CycleToJson(Read(recording)[0]), CycleToJson(first));
  EXPECT_EQ(recorder.counts().kept, 3);
  EXPECT_EQ(recorder.counts().lost, 0);
}

TEST(Recorder, ForgetsTheOldest) {
  size_t bytes = 0;
  for (int number = 8; number <= 9; ++number)
    bytes += Compressed(CycleToJson(Deciding(number, number))).size();
  Recorder recorder({.max_bytes = bytes, .max_waiting = 1000});
  for (int number = 0; number < 10; ++number) Take(recorder, Deciding(number, number));
  const std::vector<int64_t> numbers = Numbers(recorder.Recording());
  EXPECT_EQ(numbers.back(), 9);
  EXPECT_LT(numbers.size(), 10u);
  EXPECT_LE(recorder.counts().bytes, bytes);
  // The newest is kept even if it is too large.
  Recorder small({.max_bytes = 1, .max_waiting = 1000});
  for (int number = 0; number < 3; ++number) Take(small, Deciding(number, number));
  EXPECT_THAT(Numbers(small.Recording()), ElementsAre(2));
}

TEST(Recorder, CountsWhatItCannotKeepUpWith) {
  Recorder recorder({.max_waiting = 1});
  const Cycle cycle = Deciding(0, 1);
  constexpr int kCycles = 200;
  for (int i = 0; i < kCycles; ++i) Take(recorder, cycle);
  const int64_t kept = static_cast<int64_t>(Read(recorder.Recording()).size());
  EXPECT_EQ(kept + recorder.counts().lost, kCycles);
  EXPECT_GT(recorder.counts().lost, 0);
  Recorder patient({.max_waiting = 1, .waits = true});
  for (int i = 0; i < kCycles; ++i) Take(patient, cycle);
  EXPECT_EQ(Read(patient.Recording()).size(), static_cast<size_t>(kCycles));
  EXPECT_EQ(patient.counts().lost, 0);
}

TEST(Recorder, EndsWithWorkUnderWay) {
  for (int i = 0; i < 20; ++i) {
    Recorder recorder({});
    Take(recorder, Deciding(i, i));
  }
}

// The message of the kData error on reading these bytes.
std::string ErrorOf(const std::string& bytes) {
  const TemporaryDirectory directory;
  WriteFileAtomically(directory / "r", bytes);
  try {
    ReadRecording(directory / "r", [](const RecordingHeader&, const Cycle&) {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Recording, OtherFilesAndOtherVersions) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("is not a recording"));
  EXPECT_THAT(ErrorOf("hello"), HasSubstr("is not a recording"));
  EXPECT_THAT(ErrorOf(Compressed("hello")), HasSubstr("is not a recording"));
  EXPECT_THAT(ErrorOf(Compressed(R"({"format": "tar"})")), HasSubstr("is not a recording"));
  EXPECT_THAT(
      ErrorOf(Compressed(R"({"format": "renzan-cycles", "version": 2, "program": "renzan 9"})")),
      HasSubstr("has version 2 of the format, and this program reads version 1: replay it with "
                "the program that recorded it, \"renzan 9\""));
  EXPECT_THAT(ErrorOf(Compressed(R"({"format": "renzan-cycles", "version": 1})")),
              HasSubstr("its header: the header lacks program"));
  EXPECT_THROW(ReadRecording("/no/such/file", [](const RecordingHeader&, const Cycle&) {}), Error);
}

TEST(Recording, AnyTruncationAndAnyDamageIsNoticed) {
  const std::string recording = RecordingOf(
      {"renzan 1", "me", 0},
      {Compressed(CycleToJson(Deciding(1, 1))), Compressed(CycleToJson(Deciding(2, 2)))});
  EXPECT_EQ(ErrorOf(recording), "no error");
  for (size_t size = 4; size < recording.size(); size += 1 + size / 20)
    EXPECT_THAT(ErrorOf(recording.substr(0, size)), HasSubstr("is truncated"))
        << size << " of " << recording.size() << " bytes";
  int harmless = 0;
  for (size_t at = 0; at < recording.size(); at += 1 + at / 20) {
    std::string damaged = recording;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    // A few bits of a frame's header do not affect its content.
    if (ErrorOf(damaged) != "no error") continue;
    ++harmless;
    EXPECT_EQ(Numbers(damaged), Numbers(recording)) << "byte " << at;
    EXPECT_EQ(CycleToJson(Read(damaged)[1]), CycleToJson(Read(recording)[1])) << "byte " << at;
  }
  EXPECT_LT(harmless, 5);
  EXPECT_THAT(ErrorOf(recording + "x"), HasSubstr("has more after its 2 cycles"));
}

}  // namespace
}  // namespace renzan::cluster::record
