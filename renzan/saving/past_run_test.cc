#include "renzan/saving/past_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <tuple>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/unreadable_files_for_test.h"
#include "renzan/checkpoint/directory.h"
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
  // A model without a manifest will not become readable by itself, but the run's owner may restore
  // it.
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

// Writes one checkpoint per machine class, two steps apart.
void TrainOnClasses(const TrainConfig& config, const std::string& dir,
                    const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    Trainer::Options options;
    options.config_yaml = PrintConfig([c = config](ConfigFields& f) mutable { c.Describe(f); });
    options.run = {{"isa", classes[i]}};
    RunRanksAsThreads(1, [&](Communicator& comm) {
      Trainer trainer(comm, config, dir, SystemClock(), options);
      trainer.TrainTo(2 * static_cast<int64_t>(i) + 2);
      trainer.StopHere();
    });
  }
}

// What resuming on a machine of class `here` throws, and the step that it resumes from.
std::pair<std::string, int64_t> ResumeOn(const TrainConfig& config, const std::string& dir,
                                         const std::string& here) {
  const std::map<std::string, std::string> run = {{"isa", here}};
  const RunDirectories directories{
      .run = dir + "/run", .checkpoints = dir, .model = dir + "/run/model"};
  try {
    int64_t step = -1;
    const PastRun past = FindPastRun(directories, config, run, 100);
    RunRanksAsThreads(2, [&](Communicator& comm) {
      ThreadPool pool(1);
      TestModel model(config, TestSchema(), comm, pool);
      const ResumePoint point =
          LoadNewest(past.checkpoints, model.Updated(), comm, [&](const std::string& path) {
            if (comm.rank() == 0) CheckSameArithmetic(path, config, run);
          });
      if (comm.rank() == 0) step = point.step;
    });
    return {"", step};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.what();
    return {error.what(), -1};
  }
}

void Corrupt(const std::string& checkpoint) {
  const std::string path = checkpoint + "/dense.safetensors";
  std::string content = ReadFile(path);
  content.back() ^= 1;
  WriteFileAtomically(path, content);
}

// A run may have moved between CPUs and GPUs, so what counts is the checkpoint that is loaded.
TEST(FindPastRun, AnOlderCheckpointOfAnotherGpuClassIsRefusedWhenItIsNeeded) {
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.incremental = false;
  TemporaryDirectory dir;
  TrainOnClasses(config, dir.path(), {"sm_90x132", "avx2"});
  EXPECT_EQ(ResumeOn(config, dir.path(), "sm_80x108"), (std::pair<std::string, int64_t>{"", 4}));
  Corrupt(dir / CheckpointName(4));
  EXPECT_THAT(ResumeOn(config, dir.path(), "sm_80x108").first,
              HasSubstr(CheckpointName(2) + " was computed on GPUs of class sm_90x132, and this "
                                            "one is of sm_80x108"));
  EXPECT_EQ(ResumeOn(config, dir.path(), "sm_90x132").second, 2);
}

TEST(FindPastRun, TheNewestCheckpointOfAnotherGpuClassIsRefused) {
  TrainConfig config = CheckpointingConfig();
  TemporaryDirectory dir;
  TrainOnClasses(config, dir.path(), {"avx2", "sm_90x132"});
  EXPECT_THAT(ResumeOn(config, dir.path(), "sm_80x108").first, HasSubstr("of class sm_90x132"));
  EXPECT_EQ(ResumeOn(config, dir.path(), "avx512").second, 4);
}

}  // namespace
}  // namespace renzan
