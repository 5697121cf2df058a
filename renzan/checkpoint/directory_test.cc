#include "renzan/checkpoint/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "renzan/base/unreadable_files_for_test.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CheckpointName, HasAtLeastEightDigits) {
  EXPECT_EQ(CheckpointName(0), "step-00000000");
  EXPECT_EQ(CheckpointName(1234), "step-00001234");
  EXPECT_EQ(CheckpointName(1234567890123), "step-1234567890123");
  for (const int64_t step : {int64_t{0}, int64_t{99999999}, int64_t{100000000}, int64_t{1} << 61})
    EXPECT_EQ(StepOfCheckpointName(CheckpointName(step)), step);
  for (const char* name : {"", "step-", "step-1", "step-000000001", "step-0000000a",
                           "step-00000001 ", "step--0000001", ".step-00000001.partial",
                           "step-00000001.corrupt", "Step-00000001", "step-99999999999999999999"})
    EXPECT_EQ(StepOfCheckpointName(name), std::nullopt) << name;
}

class Directory : public ::testing::Test {
 protected:
  std::string At(int64_t step) const { return dir_ / CheckpointName(step); }

  void Full(int64_t step) { model_.SaveFull(dir_.path(), step); }
  void Increment(int64_t step, int64_t base, bool int8 = false) {
    model_.SaveIncrement(dir_.path(), step, base, {1, 2}, int8);
  }
  void Break(int64_t step) {
    EditFile(At(step) + "/dense.safetensors", [](std::string& content) { content.pop_back(); });
  }

  // Names of all directories; oldest checkpoint first.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (const std::string& name : Names()) steps.push_back(*StepOfCheckpointName(name));
    return steps;
  }

  TemporaryDirectory dir_;
  TestModel model_;
};

TEST_F(Directory, IsListedNewestFirst) {
  EXPECT_THAT(ListCheckpoints(dir_ / "missing"), IsEmpty());
  EXPECT_THAT(ListCheckpoints(dir_.path()), IsEmpty());
  Full(10);
  Full(100000000);
  Increment(20, 10);
  Increment(30, 10, true);
  fs::create_directory(dir_ / ".step-00000040.partial");
  fs::create_directory(dir_ / "step-00000050.corrupt");
  fs::create_directory(dir_ / "step-7");
  WriteFileAtomically(dir_ / "notes.txt", "");
  const std::vector<CheckpointEntry> list = ListCheckpoints(dir_.path());
  ASSERT_EQ(list.size(), 4u);
  for (const CheckpointEntry& entry : list) {
    EXPECT_EQ(entry.problem, "");
    EXPECT_EQ(entry.name, CheckpointName(entry.step));
    EXPECT_EQ(entry.path, At(entry.step));
    EXPECT_GT(entry.bytes, 0u);
    EXPECT_EQ(entry.manifest_sha256, CheckpointManifest::Read(entry.path).manifest_sha256);
  }
  EXPECT_EQ(list[0].step, 100000000);
  EXPECT_EQ(list[1].step, 30);
  EXPECT_EQ(list[1].kind, CheckpointKind::kIncremental);
  EXPECT_EQ(list[1].base, "step-00000010");
  EXPECT_EQ(list[1].quantization, "int8");
  EXPECT_EQ(list[2].quantization, "");
  EXPECT_EQ(list[3].kind, CheckpointKind::kFull);
  EXPECT_EQ(list[3].base, "");
}

TEST_F(Directory, ListsProblemsInsteadOfThrowing) {
  Full(10);
  Increment(20, 10);
  Full(30);
  Full(40);
  Full(50);
  fs::create_directory(At(60));  // empty
  Break(30);
  EditFile(At(40) + "/manifest.json", [](std::string& content) { content[5] ^= 1; });
  fs::rename(At(50), At(70));
  const auto problems = [&] {
    std::map<int64_t, std::string> problems;
    for (const CheckpointEntry& entry : ListCheckpoints(dir_.path()))
      problems[entry.step] = entry.problem;
    return problems;
  };
  auto found = problems();
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[10], "");
  EXPECT_EQ(found[20], "");
  EXPECT_THAT(found[30], HasSubstr("the manifest says"));
  EXPECT_THAT(found[40], HasSubstr("not a valid manifest"));
  EXPECT_THAT(found[60], HasSubstr("cannot read"));
  EXPECT_THAT(found[70], HasSubstr("holds step 50: it was renamed"));
  Break(10);
  found = problems();
  EXPECT_THAT(found[20], HasSubstr(At(10)));
  fs::remove_all(At(10));
  EXPECT_THAT(problems()[20], HasSubstr(At(10)));
}

TEST_F(Directory, KeepsTheNewestAndTheirBases) {
  Full(10);
  Increment(20, 10);
  Increment(30, 10);
  Full(40);
  Increment(50, 40);
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 5), IsEmpty());
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 3), ElementsAre("step-00000020"));
  EXPECT_THAT(Steps(), ElementsAre(10, 30, 40, 50));  // 30 needs 10
  // An increment is removed before its base.
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1), ElementsAre("step-00000030", "step-00000010"));
  EXPECT_THAT(Steps(), ElementsAre(40, 50));
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1), IsEmpty());
  CheckpointReader(At(50)).VerifyAll();
  EXPECT_THAT(RemoveOldCheckpoints(dir_ / "missing", 1), IsEmpty());
}

TEST_F(Directory, KeepsAPinnedOneAndItsBase) {
  Full(10);
  Increment(20, 10);
  Increment(30, 10);
  Full(40);
  Full(50);
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1, "step-00000020"),
              ElementsAre("step-00000030", "step-00000040"));
  EXPECT_THAT(Steps(), ElementsAre(10, 20, 50));
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1, "step-00000050"),
              ElementsAre("step-00000020", "step-00000010"));
}

// A run resumed from 20 because the later checkpoints' data are corrupt, and it could not set them
// aside.
TEST_F(Directory, DoesNotCountThoseAfterTheStepOfTheRunAndKeepsThem) {
  Full(10);
  Full(20);
  Full(30);
  Full(40);
  Increment(50, 40);
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1, "", 30),
              ElementsAre("step-00000020", "step-00000010"));
  EXPECT_THAT(Steps(), ElementsAre(30, 40, 50));
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1, "", 60), ElementsAre("step-00000030"));
}

TEST_F(Directory, DoesNotCountCorruptOnesAndKeepsThem) {
  Full(10);
  Full(20);
  Full(30);
  Full(40);
  Break(10);
  Break(40);
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 2), IsEmpty());
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1), ElementsAre("step-00000020"));
  EXPECT_THAT(Steps(), ElementsAre(10, 30, 40));
}

// Access may be granted again, and a network disk may come back.
TEST_F(Directory, KeepsEverythingWhileOneCannotBeRead) {
  using Call = UnreadableFiles::Call;
  Full(10);
  Full(20);
  Increment(30, 20);
  Full(40);
  UnreadableFiles disk;
  const ScopedFileSystem scope(disk);
  const std::pair<Call, std::string> failures[] = {{Call::kStat, At(30) + "/manifest.json"},
                                                   {Call::kStat, At(30) + "/dense"},
                                                   {Call::kStat, At(20) + "/manifest.json"},
                                                   {Call::kOpen, At(30) + "/manifest.json"},
                                                   {Call::kRead, At(30) + "/manifest.json"}};
  for (const int error : {EIO, ESTALE, EACCES}) {
    const ErrorCode code = error == EACCES ? ErrorCode::kNoInput : ErrorCode::kIo;
    for (const auto& [call, file] : failures) {
      disk.Break(file, call, error);
      const std::vector<CheckpointEntry> entries = ListCheckpoints(dir_.path());
      ASSERT_EQ(entries.size(), 4u) << file;
      EXPECT_EQ(entries[1].unreadable, code) << file;
      EXPECT_THAT(entries[1].problem, HasSubstr("cannot read"));
      EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1), IsEmpty());
      EXPECT_THROW(MoveAside(At(30)), Error);
      disk.Break(dir_.path(), Call::kStat, error);
      EXPECT_THROW(ListCheckpoints(dir_.path()), Error) << "an unreadable directory is not empty";
      disk.Heal();
      EXPECT_THAT(Steps(), ElementsAre(10, 20, 30, 40));
    }
  }
  // What does not exist will not come back.
  disk.Break(At(30) + "/manifest.json", Call::kStat, ENOENT);
  EXPECT_EQ(ListCheckpoints(dir_.path())[1].unreadable, std::nullopt);
  EXPECT_THAT(RemoveOldCheckpoints(dir_.path(), 1), ElementsAre("step-00000020", "step-00000010"));
}

TEST_F(Directory, FindsLeftoversOfAKilledProgram) {
  Full(10);
  for (const char* name : {".step-00000005.deleting", ".step-00000030.partial"}) {
    fs::create_directory(dir_ / name);
    WriteFileAtomically(dir_ / name + "/dense.safetensors", "x");
  }
  fs::create_directory(dir_ / ".elsewhere.partial");
  const std::vector<std::string> paths = MarkLeftoversForDeletion(dir_.path());
  EXPECT_THAT(Names(), ElementsAre(".elsewhere.partial", ".step-00000005.deleting",
                                   ".step-00000030.partial.deleting", "step-00000010"));
  for (const std::string& path : paths) RemoveTree(path);
  EXPECT_THAT(Names(), ElementsAre(".elsewhere.partial", "step-00000010"));
}

TEST_F(Directory, MovesAsideToAnUnusedName) {
  for (const char* name :
       {"step-00000010.corrupt", "step-00000010.corrupt-2", "step-00000010.corrupt-3"}) {
    Full(10);
    EXPECT_EQ(MoveAside(At(10) + "/"), dir_ / name);
    EXPECT_TRUE(FileExists(dir_ / name));
  }
  EXPECT_THAT(ListCheckpoints(dir_.path()), IsEmpty());
  EXPECT_THROW(MoveAside(At(10)), Error);
}

}  // namespace
}  // namespace renzan
