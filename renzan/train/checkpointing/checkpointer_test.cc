// Checkpoints of a model that goes on training, loaded by other numbers of workers, on disks that
// fill up and lose power.

#include "renzan/train/checkpointing/checkpointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <limits>
#include <mutex>

#include "renzan/base/file.h"
#include "renzan/base/lossy_file_system.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/testing.h"
#include "renzan/train/checkpointing/resume.h"
#include "renzan/train/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;
using Digests = std::map<std::string, std::string>;

// Advances at every look, so that everything takes time.
class TickingClock : public Clock {
 public:
  explicit TickingClock(double tick) : tick_(tick) {}
  double MonotonicSeconds() const override { return static_cast<double>(++ticks_) * tick_; }
  double UnixSeconds() const override { return 1.7e9; }

 private:
  double tick_;
  mutable std::atomic<int64_t> ticks_{0};
};

struct Recorder : CheckpointObserver {
  std::vector<CheckpointReport> reports;
  int stops = 0;
  void OnCheckpoint(const CheckpointReport& report) override { reports.push_back(report); }
  void OnStopping(int64_t) override { ++stops; }
};

// A worker that trains, with a checkpointer. Its bits are those of a run without one.
struct Trainer {
  Trainer(Communicator& comm_in, const TrainConfig& config, const std::string& dir,
          const Clock& clock, double grace_seconds = 0)
      : comm(comm_in),
        pool(1),
        model(config, TestSchema(), TestPoolingFactors(), comm_in, pool),
        metrics(1) {
    const std::vector<std::string> paths = CheckpointsToResume(dir);
    std::optional<CheckpointLineage> lineage;
    if (!paths.empty()) {
      const ResumePoint point = LoadNewest(paths, model, comm);
      step = point.step;
      lineage = point.lineage;
    }
    checkpointer.emplace(Checkpointer::Options{.dir = dir,
                                               .config = config.checkpoint,
                                               .config_yaml = "seed: 9\n",
                                               .run = {},
                                               .grace_seconds = grace_seconds,
                                               .requests = &requests,
                                               .clock = &clock,
                                               .observer = comm.rank() == 0 ? &recorder : nullptr},
                         model, comm, step, int64_t{1} << 40, lineage,
                         [] { return ProgressTensors(); });
  }

  // True if it was to stop.
  bool TrainTo(int64_t end) {
    while (step < end) {
      model.Step(MakeSlice(model, step), step, metrics);
      ++step;
      if (checkpointer->ShouldStop(step)) return true;
    }
    return false;
  }

  // Writes a checkpoint here and waits for it.
  void StopHere() {
    requests.stop = true;
    while (!checkpointer->ShouldStop(step)) {
    }
    requests.stop = false;
  }

  Communicator& comm;
  ThreadPool pool;
  HybridModel model;
  std::vector<BinaryMetrics> metrics;
  RunRequests requests;
  Recorder recorder;
  int64_t step = 0;
  std::optional<Checkpointer> checkpointer;
};

TrainConfig Config() {
  TrainConfig config = SmallConfig();
  config.optimizer.dense.type = "adam";
  config.optimizer.sparse.type = "rowwise_adagrad";
  config.checkpoint.every = "0";
  return config;
}

// What an undisturbed model is after so many steps.
Digests Undisturbed(const TrainConfig& config, int64_t steps) {
  Digests digests;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    HybridModel model(config, TestSchema(), TestPoolingFactors(), comm, pool);
    std::vector<BinaryMetrics> metrics(1);
    for (int64_t step = 0; step < steps; ++step) model.Step(MakeSlice(model, step), step, metrics);
    digests = DigestsOf(model);
  });
  return digests;
}

void RunRanks(int world, const std::function<void(Communicator&)>& body) {
  RunRanksAsThreads(world, body);
}

TEST(Checkpointer, LoadsTheExactStepOnAnyNumberOfWorkers) {
  for (const char* sparse : {"sgd", "adagrad", "rowwise_adagrad"}) {
    TrainConfig config = Config();
    config.optimizer.sparse.type = sparse;
    config.checkpoint.every_steps = 2;
    TemporaryDirectory dir;
    int64_t steps = 0;
    for (const int world : {3, 1, 4, 2, 7}) {
      std::mutex mutex;
      Digests loaded;
      RunRanks(world, [&](Communicator& comm) {
        Trainer trainer(comm, config, dir.path(), SystemClock());
        EXPECT_EQ(trainer.step, steps);
        {
          std::lock_guard lock(mutex);
          for (const auto& [name, digest] : DigestsOf(trainer.model)) loaded[name] = digest;
        }
        // Checkpoints are in flight all the time; the last one is at an odd step.
        trainer.TrainTo(steps + 5);
        trainer.StopHere();
        if (comm.rank() == 0) {
          EXPECT_EQ(trainer.recorder.stops, 1);
          for (const CheckpointReport& report : trainer.recorder.reports)
            EXPECT_EQ(report.error, "");
        }
      });
      EXPECT_EQ(loaded, Undisturbed(config, steps)) << world << " workers, " << sparse;
      steps += 5;
    }
  }
}

TEST(Checkpointer, IncrementsBuildOnOneBaseUntilTheyDoNotPay) {
  TrainConfig config = Config();
  config.checkpoint.keep = 100;
  TemporaryDirectory dir;
  RunRanks(2, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    for (int64_t i = 1; i <= 40; ++i) {
      trainer.TrainTo(i);
      trainer.StopHere();
    }
  });
  std::vector<CheckpointEntry> entries = ListCheckpoints(dir.path());
  ASSERT_EQ(entries.size(), 40u);
  int full = 0, incremental = 0;
  for (const CheckpointEntry& entry : entries) {
    EXPECT_EQ(entry.problem, "");
    (*entry.kind == CheckpointKind::kFull ? full : incremental) += 1;
    CheckpointReader(entry.path).VerifyAll();
  }
  EXPECT_EQ(*entries.back().kind, CheckpointKind::kFull);
  EXPECT_GT(full, 1);
  EXPECT_GT(incremental, full);
}

TEST(Checkpointer, ARequestOfOneWorkerReachesAll) {
  TrainConfig config = Config();
  TemporaryDirectory dir;
  RunRanks(3, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    if (comm.rank() == 2) trainer.requests.checkpoint = true;
    trainer.TrainTo(100);
    EXPECT_FALSE(trainer.requests.checkpoint);
    if (comm.rank() == 1) trainer.requests.stop = true;
    EXPECT_TRUE(trainer.TrainTo(10000));
    EXPECT_LT(trainer.step, 10000);
  });
  EXPECT_EQ(ListCheckpoints(dir.path()).size(), 2u);
}

TEST(Checkpointer, AFullDiskEndsTheCheckpointAndNotTheTraining) {
  TrainConfig config = Config();
  TemporaryDirectory dir;
  LossyFileSystem disk;
  ScopedFileSystem scope(disk);
  RunRanks(2, [&](Communicator& comm) {
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
      EXPECT_FALSE(FileExists(CheckpointWriter::StagingPath(dir / CheckpointName(6))));
      disk.Heal();
    }
    comm.Barrier();
    trainer.TrainTo(8);
    trainer.StopHere();
  });
  Digests loaded;
  RunRanks(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, 8);
    loaded = DigestsOf(trainer.model);
  });
  EXPECT_EQ(loaded, Undisturbed(config, 8));
}

// A disk that fails is not a checkpoint that is corrupt: nothing is renamed, nothing older is
// resumed from, and when the disk is well again all is as it was.
TEST(Checkpointer, AnIoErrorOnResumingLeavesTheCheckpointAlone) {
  class FailingDisk : public FileSystem {
   public:
    std::string failing;
    ssize_t ReadAt(int fd, const std::string& path, void* data, size_t bytes,
                   uint64_t offset) override {
      if (failing.empty() || path.find(failing) == std::string::npos)
        return FileSystem::ReadAt(fd, path, data, bytes, offset);
      errno = EIO;
      return -1;
    }
  };
  TrainConfig config = Config();
  config.checkpoint.keep = 100;
  TemporaryDirectory dir;
  RunRanks(1, [&](Communicator& comm) {
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
  // Its manifest, its files, and those of the base that it needs.
  for (const std::string& failing :
       {CheckpointName(5) + "/manifest.json", CheckpointName(5) + "/dense.safetensors",
        CheckpointName(5) + "/table.b.safetensors", CheckpointName(3) + "/manifest.json",
        CheckpointName(3) + "/table.b.safetensors"}) {
    FailingDisk disk;
    const ScopedFileSystem scope(disk);
    for (const int world : {1, 2}) {
      disk.failing = failing;
      RunRanksAsThreads(world, [&](Communicator& comm) {
        try {
          Trainer trainer(comm, config, dir.path(), SystemClock());
          ADD_FAILURE() << "resumed although " << failing << " cannot be read";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
          EXPECT_THAT(error.what(), HasSubstr("it may be valid"));
        }
      });
      if (failing.ends_with("manifest.json")) {
        EXPECT_THAT(RemoveOldCheckpoints(dir.path(), 1), ::testing::IsEmpty());
      }
      disk.failing = "";
      EXPECT_EQ(names(), before) << failing;
    }
  }
  // An increment holds the whole dense part: the base's is not read.
  FailingDisk disk;
  const ScopedFileSystem scope(disk);
  disk.failing = CheckpointName(3) + "/dense.safetensors";
  RunRanks(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, 5);
  });
}

// One worker's table holds an infinity from some step on. No other sees it, and yet none of them
// writes anything or removes what is good.
TEST(Checkpointer, AModelThatIsNotFiniteIsNeverSaved) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  TrainConfig config = Config();
  config.checkpoint.keep = 1;
  for (const char* how : {"stop", "request", "every_steps", "save"}) {
    for (const int world : {1, 3}) {
      config.checkpoint.every_steps = how == std::string("every_steps") ? 5 : 0;
      TemporaryDirectory dir;
      RunRanks(world, [&](Communicator& comm) {
        Trainer trainer(comm, config, dir.path(), SystemClock());
        trainer.TrainTo(3);
        trainer.StopHere();
        // √∞ in row-wise Adagrad's denominator: the weights stay finite.
        for (EmbeddingTable& table : trainer.model.embeddings().tables())
          if (table.spec.name == "a")
            std::fill_n(table.state.data(), table.state.size(), kInfinity);
        try {
          for (; trainer.step < 5; ++trainer.step)
            trainer.model.Step(MakeSlice(trainer.model, trainer.step), trainer.step,
                               trainer.metrics);
          if (how == std::string("save")) {
            trainer.checkpointer->SaveModel(dir / "model", trainer.step);
          } else {
            trainer.requests.stop = how == std::string("stop");
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

// Rows that no step has touched since are saved unseen, and older versions did not look at all.
TEST(Checkpointer, ACheckpointThatIsNotFiniteIsSkipped) {
  TrainConfig config = Config();
  config.checkpoint.incremental = false;
  TemporaryDirectory dir;
  RunRanks(2, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    trainer.TrainTo(2);
    trainer.StopHere();
    for (EmbeddingTable& table : trainer.model.embeddings().tables())
      if (table.spec.name == "b") table.weights[999 * 8] = std::nanf("");
    trainer.TrainTo(3);
    trainer.StopHere();
  });
  ASSERT_EQ(ListCheckpoints(dir.path())[0].step, 3);
  RunRanks(2, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, 2);
  });
}

TEST(Checkpointer, TheBestModelsCheckpointStays) {
  TrainConfig config = Config();
  config.checkpoint.keep = 1;
  TemporaryDirectory dir;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const CheckpointEntry& entry : ListCheckpoints(dir.path())) found.push_back(entry.name);
    return found;
  };
  RunRanks(3, [&](Communicator& comm) {
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
    // One that is there already needs no second one, and takes the place of the other.
    trainer.checkpointer->KeepBest(9);
    for (int64_t step = 10; step <= 12; ++step) write_at(step);
    if (comm.rank() == 0) {
      EXPECT_THAT(names(), ::testing::Contains(CheckpointName(9)));
      EXPECT_THAT(names(), ::testing::Not(::testing::Contains(CheckpointName(4))));
    }
    comm.Barrier();
  });
  Digests loaded;
  RunRanks(2, [&](Communicator& comm) {
    ThreadPool pool(1);
    HybridModel model(config, TestSchema(), TestPoolingFactors(), comm, pool);
    LoadNewest({dir / CheckpointName(9)}, model, comm);
    const Digests mine = DigestsOf(model);
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    for (const auto& [name, digest] : mine) loaded[name] = digest;
  });
  EXPECT_EQ(loaded, Undisturbed(config, 9));
}

// Without the best model's checkpoint, later ones would promise a model that is nowhere.
TEST(Checkpointer, WithoutRoomForTheBestModelTheRunFails) {
  TrainConfig config = Config();
  TemporaryDirectory dir;
  LossyFileSystem disk;
  ScopedFileSystem scope(disk);
  RunRanks(2, [&](Communicator& comm) {
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
    // A stop leaves what was there before, to begin from.
    trainer.StopHere();
  });
  ASSERT_EQ(ListCheckpoints(dir.path()).size(), 1u);
  EXPECT_EQ(ListCheckpoints(dir.path())[0].step, 3);
}

// A slow disk (the clock says) and little time: the increment is chosen, although a full one is
// due.
TEST(Checkpointer, ShortGraceTakesTheIncrement) {
  for (const double grace : {0.0, 0.001}) {
    TrainConfig config = Config();
    config.checkpoint.keep = 100;
    TemporaryDirectory dir;
    CheckpointKind last = CheckpointKind::kFull;
    RunRanks(1, [&](Communicator& comm) {
      const TickingClock clock(1);
      Trainer trainer(comm, config, dir.path(), clock, grace);
      // The rule without a deadline makes a new base somewhere on the way.
      int full = 0;
      for (int64_t i = 1; i <= 40; ++i) {
        trainer.TrainTo(i);
        trainer.StopHere();
        last = trainer.recorder.reports.back().kind;
        full += last == CheckpointKind::kFull ? 1 : 0;
      }
      EXPECT_EQ(full > 1, grace == 0) << full << " full ones, grace " << grace;
    });
  }
}

// Power is lost at every operation on the disk in turn. What is there afterwards is the exact state
// of some step, and no older than the last checkpoint that was reported written.
TEST(Checkpointer, PowerLossAtAnyMoment) {
  TrainConfig config = Config();
  config.checkpoint.keep = 1;
  std::map<int64_t, Digests> expected;
  for (int64_t step = 0; step <= 6; ++step) expected[step] = Undisturbed(config, step);
  uint64_t operations = 0, survived = 0;
  for (uint64_t k = 0; k == 0 || k < operations; ++k) {
    TemporaryDirectory dir;
    int64_t durable = 0;
    LossyFileSystem disk;
    {
      ScopedFileSystem scope(disk);
      // The first time through to the end, to count.
      if (k > 0) disk.PowerOffAfter(k);
      RunRanks(1, [&](Communicator& comm) {
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
    RunRanks(1, [&](Communicator& comm) {
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
