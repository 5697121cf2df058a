// The checkpoint of the best model so far.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <mutex>

#include "renzan/base/file/file.h"
#include "renzan/base/file/lossy_file_system.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/saving/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

TEST(Checkpointer, KeepsTheBestModelsCheckpoint) {
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.keep = 1;
  TemporaryDirectory dir;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const CheckpointEntry& entry : ListCheckpoints(dir.path())) found.push_back(entry.name);
    return found;
  };
  RunRanksAsThreads(3, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    const auto write_at = [&](int64_t step) {
      trainer.TrainTo(step);
      trainer.StopHere();
    };
    write_at(2);
    trainer.TrainTo(4);
    trainer.checkpointer->KeepBest(4);
    trainer.TrainTo(5);
    trainer.checkpointer->Finish();
    for (int64_t step = 6; step <= 9; ++step) write_at(step);
    if (comm.rank() == 0) {
      EXPECT_THAT(names(), ::testing::Contains(CheckpointName(4)));
    }
    comm.Barrier();
    // Step 9 already has a checkpoint. It replaces step 4 as the best.
    trainer.checkpointer->KeepBest(9);
    for (int64_t step = 10; step <= 12; ++step) write_at(step);
    if (comm.rank() == 0) {
      EXPECT_THAT(names(), ::testing::Contains(CheckpointName(9)));
      EXPECT_THAT(names(), ::testing::Not(::testing::Contains(CheckpointName(4))));
    }
    comm.Barrier();
  });
  std::map<std::string, std::string> loaded;
  RunRanksAsThreads(2, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, TestSchema(), comm, pool);
    LoadNewest({dir / CheckpointName(9)}, model.Updated(), comm);
    const auto mine = DigestsOf(model);
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    for (const auto& [name, digest] : mine) loaded[name] = digest;
  });
  EXPECT_EQ(loaded, ReferenceDigests(config, 9));
}

// Without the best model's checkpoint, later ones would record a best step that does not exist.
TEST(Checkpointer, FailsTheRunWhenTheBestModelCannotBeWritten) {
  TrainConfig config = CheckpointingConfig();
  TemporaryDirectory dir;
  LossyFileSystem disk;
  ScopedFileSystem scope(disk);
  RunRanksAsThreads(2, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    trainer.TrainTo(3);
    trainer.StopHere();
    comm.Barrier();
    if (comm.rank() == 0) disk.FailWritesAfter(3000, ENOSPC);
    comm.Barrier();
    trainer.TrainTo(4);
    try {
      trainer.checkpointer->KeepBest(4);
      trainer.checkpointer->Finish();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left"));
    }
    comm.Barrier();
    if (comm.rank() == 0) disk.Heal();
    comm.Barrier();
    // A stop keeps the earlier checkpoint to resume from.
    trainer.StopHere();
  });
  ASSERT_EQ(ListCheckpoints(dir.path()).size(), 1u);
  EXPECT_EQ(ListCheckpoints(dir.path())[0].step, 3);
}

}  // namespace
}  // namespace renzan
