// Checkpoints on disks that fill up, fail or lose power, and of models that are not finite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "renzan/base/file/file.h"
#include "renzan/base/file/lossy_file_system.h"
#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"
#include "renzan/base/unreadable_files_for_test.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/saving/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

class ScopedLogLevel {
 public:
  explicit ScopedLogLevel(LogLevel level) { SetLogLevel(level); }
  ~ScopedLogLevel() { SetLogLevel(LogLevel::kInfo); }
  ScopedLogLevel(const ScopedLogLevel&) = delete;
  ScopedLogLevel& operator=(const ScopedLogLevel&) = delete;
};

TEST(Checkpointer, AFullDiskFailsTheCheckpointButNotTheTraining) {
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
    trainer.TrainTo(6);
    trainer.StopHere();
    comm.Barrier();
    if (comm.rank() == 0) {
      ASSERT_EQ(trainer.recorder.reports.size(), 2u);
      EXPECT_THAT(trainer.recorder.reports[1].error, HasSubstr("No space left"));
      EXPECT_EQ(ListCheckpoints(dir.path()).size(), 1u);
      EXPECT_FALSE(FileExists(StagedDirectory::StagingPath(dir / CheckpointName(6))));
      disk.Heal();
    }
    comm.Barrier();
    trainer.TrainTo(8);
    trainer.StopHere();
  });
  std::map<std::string, std::string> loaded;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, 8);
    loaded = DigestsOf(trainer.model);
  });
  EXPECT_EQ(loaded, ReferenceDigests(config, 8));
}

// Whichever rank ends first, a launcher sees that another attempt would not help.
TEST(Checkpointer, AModelThatCannotBeCreatedIsTheSameErrorOnAllRanks) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "file", "");
  RunRanksAsThreads(2, [&](Communicator& comm) {
    Trainer trainer(comm, CheckpointingConfig(), dir.path(), SystemClock());
    trainer.TrainTo(1);
    try {
      trainer.checkpointer->SaveModel(dir / "file/model", 1);
      ADD_FAILURE() << "saved below a file";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCantCreate) << error.what();
    }
  });
}

// What cannot be read is not corrupt: no checkpoint is renamed, the run does not fall back to an
// older one, and it can resume once the disk works again.
TEST(Checkpointer, AnUnreadableCheckpointIsLeftUnchanged) {
  using Call = UnreadableFiles::Call;
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.keep = 100;
  TemporaryDirectory dir;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    for (const int64_t step : {3, 4, 5}) {
      trainer.TrainTo(step);
      trainer.StopHere();
    }
  });
  const auto names = [&] {
    std::vector<std::string> found;
    for (const CheckpointEntry& entry : ListCheckpoints(dir.path())) found.push_back(entry.name);
    return found;
  };
  const std::vector<std::string> before = names();
  ASSERT_EQ(before.size(), 3u);
  ASSERT_EQ(*ListCheckpoints(dir.path())[0].kind, CheckpointKind::kIncremental);
  // The newest manifest and files, and the parts of its base that are read.
  for (const std::string& failing :
       {CheckpointName(5) + "/manifest.json", CheckpointName(5) + "/dense.safetensors",
        CheckpointName(5) + "/table.b.safetensors", CheckpointName(3) + "/manifest.json",
        CheckpointName(3) + "/table.b.safetensors"}) {
    UnreadableFiles disk;
    const ScopedFileSystem scope(disk);
    const std::pair<Call, int> failures[] = {
        {Call::kRead, EIO}, {Call::kOpen, EACCES}, {Call::kStat, EACCES}, {Call::kStat, ESTALE}};
    for (const auto& [call, error_number] : failures) {
      for (const int world : {1, 2}) {
        disk.Break(failing, call, error_number);
        RunRanksAsThreads(world, [&](Communicator& comm) {
          try {
            Trainer trainer(comm, config, dir.path(), SystemClock());
            ADD_FAILURE() << "resumed although " << failing << " cannot be read";
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), error_number == EACCES ? ErrorCode::kNoInput : ErrorCode::kIo)
                << error.what();
            EXPECT_THAT(error.what(), HasSubstr("it may be valid"));
          }
        });
        if (failing.ends_with("manifest.json")) {
          EXPECT_THAT(RemoveOldCheckpoints(dir.path(), 1), ::testing::IsEmpty());
        }
        disk.Heal();
        EXPECT_EQ(names(), before) << failing;
      }
    }
  }
  // An increment holds all dense parameters, so the base's are not read.
  UnreadableFiles disk;
  const ScopedFileSystem scope(disk);
  disk.Break(CheckpointName(3) + "/dense.safetensors", Call::kRead, EIO);
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, 5);
  });
}

// One worker's table becomes infinite. The other workers do not see it, yet none of them writes a
// checkpoint or removes a good one.
TEST(Checkpointer, AModelThatIsNotFiniteIsNeverSaved) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.keep = 1;
  for (const char* how : {"stop", "request", "every_steps", "save"}) {
    for (const int world : {1, 3}) {
      config.checkpoint.every_steps = how == std::string("every_steps") ? 5 : 0;
      TemporaryDirectory dir;
      RunRanksAsThreads(world, [&](Communicator& comm) {
        Trainer trainer(comm, config, dir.path(), SystemClock());
        trainer.TrainTo(3);
        trainer.StopHere();
        // √∞ is in row-wise Adagrad's denominator, so the weights stay finite.
        for (EmbeddingShard& shard : trainer.model.embeddings().shards())
          if (shard.table.name == "a")
            shard.store->SetState(
                0, std::vector<float>(static_cast<size_t>(shard.store->num_rows()), kInfinity));
        try {
          for (; trainer.step < 5; ++trainer.step)
            trainer.model.Run(MakeSlice(trainer.model, trainer.step), trainer.step,
                              trainer.metrics);
          if (how == std::string("save")) {
            trainer.checkpointer->SaveModel(dir / "model", trainer.step);
          } else {
            trainer.requests.stops = how == std::string("stop") ? 1 : 0;
            trainer.requests.checkpoint = how == std::string("request");
            while (!trainer.checkpointer->ShouldStop(trainer.step)) {
            }
          }
          ADD_FAILURE() << how << ": no error on rank " << comm.rank();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kSoftware);
          EXPECT_THAT(error.what(), HasSubstr("at step 4: NaN or infinite rows of embedding"));
        }
      });
      EXPECT_FALSE(FileExists(dir / "model"));
      const std::vector<CheckpointEntry> entries = ListCheckpoints(dir.path());
      ASSERT_EQ(entries.size(), 1u) << how << ", " << world << " workers";
      EXPECT_EQ(entries[0].step, 3);
    }
  }
}

// Saving checks only rows that were updated, and older versions did not check at all, so a
// checkpoint may hold a NaN.
TEST(Checkpointer, ACheckpointThatIsNotFiniteIsSkipped) {
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.incremental = false;
  TemporaryDirectory dir;
  RunRanksAsThreads(2, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    trainer.TrainTo(2);
    trainer.StopHere();
    for (EmbeddingShard& shard : trainer.model.embeddings().shards())
      if (shard.table.name == "b")
        shard.store->SetWeights(999, std::vector<float>(8, std::nanf("")));
    trainer.TrainTo(3);
    trainer.StopHere();
  });
  ASSERT_EQ(ListCheckpoints(dir.path())[0].step, 3);
  RunRanksAsThreads(2, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, 2);
  });
}

// Power is lost at each disk operation in turn. The run then resumes with the exact state of some
// step, no older than the last checkpoint that was reported as written.
TEST(Checkpointer, SurvivesPowerLossAtAnyMoment) {
  // Every simulated power loss logs I/O errors.
  const ScopedLogLevel quiet(LogLevel::kError);
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.keep = 1;
  std::map<int64_t, std::map<std::string, std::string>> expected;
  for (int64_t step = 0; step <= 6; ++step) expected[step] = ReferenceDigests(config, step);
  uint64_t operations = 0, survived = 0;
  for (uint64_t k = 0; k == 0 || k < operations; ++k) {
    TemporaryDirectory dir;
    int64_t durable = 0;
    LossyFileSystem disk;
    {
      ScopedFileSystem scope(disk);
      // The first iteration runs to the end and counts the operations.
      if (k > 0) disk.PowerOffAfter(k);
      RunRanksAsThreads(1, [&](Communicator& comm) {
        try {
          Trainer trainer(comm, config, dir.path(), SystemClock());
          for (const int64_t at : {2, 3, 5, 6}) {
            trainer.TrainTo(at);
            trainer.StopHere();
            if (trainer.recorder.reports.back().error.empty()) durable = at;
          }
        } catch (const Error&) {
        }
      });
      if (k == 0) operations = disk.operations();
    }
    disk.Crash(k);
    RunRanksAsThreads(1, [&](Communicator& comm) {
      Trainer trainer(comm, config, dir.path(), SystemClock());
      EXPECT_GE(trainer.step, durable) << "power lost at operation " << k;
      EXPECT_EQ(DigestsOf(trainer.model), expected[trainer.step]) << "operation " << k;
      survived += trainer.step > 0 ? 1 : 0;
    });
  }
  EXPECT_GT(operations, 50u);
  EXPECT_GT(survived, operations / 2);
}

}  // namespace
}  // namespace renzan
