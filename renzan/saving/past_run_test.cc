#include "renzan/saving/past_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <tuple>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/unreadable_files_for_test.h"
#include "renzan/saving/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

// Training a new model in its place would throw away the one that is there.
TEST(FindPastRun, LeavesAModelThatCannotBeRead) {
  using Call = UnreadableFiles::Call;
  TemporaryDirectory dir;
  const RunDirectories directories{
      .run = dir.path(), .checkpoints = dir / "checkpoints", .model = dir / "model"};
  const TrainConfig config = CheckpointingConfig();
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, directories.checkpoints, SystemClock());
    trainer.TrainTo(2);
    trainer.checkpointer->SaveModel(directories.model, 2);
  });
  UnreadableFiles disk;
  const ScopedFileSystem scope(disk);
  const std::tuple<Call, const char*, int> failures[] = {
      {Call::kStat, "/model", EIO},
      {Call::kStat, "/model/manifest.json", EACCES},
      {Call::kStat, "/model/dense.safetensors", ESTALE},
      {Call::kOpen, "/model/manifest.json", EACCES},
      {Call::kRead, "/model/manifest.json", EIO},
      {Call::kStat, "/model.previous", EIO}};
  for (const auto& [call, file, error_number] : failures) {
    disk.Break(dir.path() + file, call, error_number);
    try {
      FindPastRun(directories, config, {}, 2);
      ADD_FAILURE() << "no error for " << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), error_number == EACCES ? ErrorCode::kNoInput : ErrorCode::kIo);
      EXPECT_THAT(error.what(), HasSubstr("cannot read"));
    }
    disk.Heal();
    EXPECT_TRUE(FileExists(directories.model));
    EXPECT_FALSE(FileExists(directories.model + ".corrupt"));
  }
  // One without a manifest will not become readable, but whoever has the run may restore it.
  disk.Break(dir.path() + "/model/manifest.json", Call::kStat, ENOENT);
  try {
    FindPastRun(directories, config, {}, 2);
    ADD_FAILURE() << "no error without a manifest";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_THAT(error.what(), HasSubstr("no checkpoint to go on from: restore it"));
  }
  EXPECT_TRUE(FileExists(directories.model));
}

}  // namespace
}  // namespace renzan
