#include "renzan/saving/checkpointer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/saving/testing.h"

namespace renzan {
namespace {

// Advances at every reading, so that every operation appears to take time.
class TickingClock : public Clock {
 public:
  explicit TickingClock(double tick) : tick_(tick) {}
  double MonotonicSeconds() const override { return static_cast<double>(++ticks_) * tick_; }
  double UnixSeconds() const override { return 1.7e9; }

 private:
  double tick_;
  mutable std::atomic<int64_t> ticks_{0};
};

// Trains on each of these in turn, always resuming from the last one's checkpoints, and compares
// what was loaded with an uninterrupted run.
struct Placing {
  int workers;
  const char* sharding = "auto";
};
void ExpectTheExactStepOnEach(TrainConfig config, const std::vector<Placing>& placings,
                              const std::string& what) {
  config.checkpoint.every_steps = 2;
  TemporaryDirectory dir;
  int64_t steps = 0;
  for (const auto& [world, sharding] : placings) {
    config.sharding.default_sharding = sharding;
    std::mutex mutex;
    std::map<std::string, std::string> loaded;
    RunRanksAsThreads(world, [&](Communicator& comm) {
      Trainer trainer(comm, config, dir.path(), SystemClock());
      EXPECT_EQ(trainer.step, steps);
      {
        std::lock_guard lock(mutex);
        for (const auto& [name, digest] : DigestsOf(trainer.model))
          EXPECT_EQ(loaded.emplace(name, digest).first->second, digest);
      }
      // A checkpoint is always in flight; the last one is at an odd step.
      trainer.TrainTo(steps + 5);
      trainer.StopHere();
      if (comm.rank() == 0) {
        EXPECT_EQ(trainer.recorder.stops, 1);
        for (const CheckpointReport& report : trainer.recorder.reports) EXPECT_EQ(report.error, "");
      }
    });
    EXPECT_EQ(loaded, ReferenceDigests(config, steps)) << world << " workers, " << what;
    steps += 5;
  }
}

// A message announces the last checkpoint, so it must know whether there will be one.
TEST(Checkpointer, AStopSaysWhetherAnythingIsSaved) {
  TemporaryDirectory dir;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    const auto stop_at = [&](int64_t step) {
      Trainer trainer(comm, CheckpointingConfig(), dir.path(), SystemClock());
      trainer.TrainTo(step);
      trainer.StopHere();
      EXPECT_EQ(trainer.recorder.stops, 1);
      EXPECT_EQ(trainer.recorder.last_checkpoints, std::ssize(trainer.recorder.reports));
      return trainer.recorder.last_checkpoints;
    };
    EXPECT_EQ(stop_at(0), 0);
    EXPECT_EQ(stop_at(2), 1);
    EXPECT_EQ(stop_at(2), 0);
  });
}

TEST(Checkpointer, LoadsTheExactStepUnderAnyShardingPlan) {
  for (const char* sparse : {"adagrad", "rowwise_adagrad", "adam", "ftrl"}) {
    TrainConfig config = CheckpointingConfig();
    config.optimizer.sparse.type = sparse;
    config.numerics.row_blocks = 4;
    config.numerics.column_blocks = 2;
    config.sharding.tables["a"] = "table_wise";
    ExpectTheExactStepOnEach(config,
                             {{3, "row_wise"},
                              {1, "auto"},
                              {4, "column_wise"},
                              {2, "replicated"},
                              {7, "table_row_wise"},
                              {3, "table_wise"},
                              {2, "row_wise"}},
                             sparse);
  }
}

// Rows that no sample looks up catch up before they are saved, on whichever worker they are.
TEST(Checkpointer, LoadsTheExactStepWhereAllRowsMove) {
  for (const auto& [sparse, decay] : {std::pair{"adam", 0.0}, {"adam", 0.1}, {"sgd", 0.1}}) {
    TrainConfig config = CheckpointingConfig();
    config.optimizer.sparse.type = sparse;
    config.optimizer.sparse.rows = "all";
    config.optimizer.sparse.weight_decay = decay;
    config.optimizer.sparse.weight_decay_mode = "l2";
    config.numerics.row_blocks = 4;
    config.numerics.column_blocks = 2;
    ExpectTheExactStepOnEach(config,
                             {{3, "row_wise"}, {1, "auto"}, {4, "column_wise"}, {2, "replicated"}},
                             fmt::format("{}, {}", sparse, decay));
  }
}

TEST(Checkpointer, LoadsTheExactStepOnAnyNumberOfWorkers) {
  for (const auto& [sparse, rows] : {std::pair{"sgd", "bf16"},
                                     {"adagrad", "fp32"},
                                     {"adagrad", "fp16"},
                                     {"adam", "fp32"},
                                     {"adam", "bf16"},
                                     {"momentum", "fp16"},
                                     {"ftrl", "fp32"},
                                     {"rowwise_adagrad", "fp32"},
                                     {"rowwise_adagrad", "bf16"}}) {
    TrainConfig config = CheckpointingConfig();
    config.numerics.embedding_precision = rows;
    config.optimizer.sparse.type = sparse;
    ExpectTheExactStepOnEach(config, {{3}, {1}, {4}, {2}, {7}},
                             fmt::format("{}, {}", sparse, rows));
  }
}

// What error feedback keeps belongs to virtual workers, which may move to other workers.
TEST(Checkpointer, LoadsWhatErrorFeedbackKeeps) {
  TrainConfig config = CheckpointingConfig();
  config.comm.forward = "int8";
  config.comm.backward = "int4";
  config.comm.error_feedback_rows = 64;
  config.numerics.row_blocks = 4;
  config.numerics.column_blocks = 2;
  ExpectTheExactStepOnEach(
      config, {{3, "row_wise"}, {1, "auto"}, {4, "column_wise"}, {7, "replicated"}, {2, "auto"}},
      "with error feedback");
}

TEST(Checkpointer, StartsANewBaseWhenIncrementsGrowTooLarge) {
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.keep = 100;
  TemporaryDirectory dir;
  RunRanksAsThreads(2, [&](Communicator& comm) {
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

// A disk on which nothing moves until it is released, and that is slow then.
class StuckDisk : public FileSystem {
 public:
  void Release() { released_ = true; }
  ssize_t Write(int fd, const void* data, size_t bytes) override {
    do std::this_thread::sleep_for(std::chrono::milliseconds(1));
    while (!released_);
    return FileSystem::Write(fd, data, bytes);
  }

 private:
  std::atomic<bool> released_{false};
};

// Trains while a checkpoint is written and returns its report. The disk starts to move after
// `steps` steps, or earlier if training waits for it.
CheckpointReport CheckpointOfManyChanges(int64_t most_copied_bytes, int64_t steps) {
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.every_steps = 1 << 20;
  DatasetSchema schema = TestSchema();
  for (CategoricalFeature& feature : schema.categorical) feature.num_embeddings = 100'000;
  TemporaryDirectory dir;
  StuckDisk disk;
  CheckpointReport report;
  const ScopedFileSystem scope(disk);
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock(),
                    {.most_copied_bytes = most_copied_bytes, .schema = schema});
    trainer.requests.checkpoint = true;
    std::thread later;
    if (most_copied_bytes < std::numeric_limits<int64_t>::max())
      later = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        disk.Release();
      });
    trainer.TrainTo(steps);
    disk.Release();
    if (later.joinable()) later.join();
    trainer.checkpointer->Finish();
    report = trainer.recorder.reports.at(0);
    const std::map<std::string, std::string> trained = DigestsOf(trainer.model);
    TestModel undisturbed(config, schema, comm, trainer.pool);
    std::vector<OutputMetrics> metrics(1);
    for (int64_t step = 0; step < steps; ++step)
      undisturbed.Run(MakeSlice(undisturbed, step, schema), step, metrics);
    EXPECT_EQ(trained, DigestsOf(undisturbed));
  });
  EXPECT_EQ(report.error, "");
  return report;
}

TEST(Checkpointer, TrainingWaitsWhenCopiesOfChangedRowsFillTheirMemory) {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  const int64_t of_all = CheckpointOfManyChanges(kUnlimited, 41).copied_bytes;
  // The checkpoint is taken after the first step.
  const int64_t of_one_step = CheckpointOfManyChanges(kUnlimited, 2).copied_bytes;
  EXPECT_GT(of_all, 5 * of_one_step);
  const int64_t most = 2 * of_one_step;
  EXPECT_LE(CheckpointOfManyChanges(most, 41).copied_bytes, most + 2 * of_one_step);
}

// One of three workers has no memory for copies, and the disk is stuck. All wait for it, until one
// is told to stop.
TEST(Checkpointer, AStopEndsTheWaitForCopies) {
  TrainConfig config = CheckpointingConfig();
  config.checkpoint.every_steps = 1 << 20;
  TemporaryDirectory dir;
  StuckDisk disk;
  std::vector<int64_t> stopped_at;
  {
    const ScopedFileSystem scope(disk);
    std::mutex mutex;
    RunRanksAsThreads(3, [&](Communicator& comm) {
      const int64_t most = comm.rank() == 1 ? 1 : std::numeric_limits<int64_t>::max();
      Trainer trainer(comm, config, dir.path(), SystemClock(), {.most_copied_bytes = most});
      trainer.requests.checkpoint = true;
      std::thread later;
      if (comm.rank() == 2)
        later = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          trainer.requests.stops = 1;
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          disk.Release();
        });
      EXPECT_TRUE(trainer.TrainTo(int64_t{1} << 30));
      if (later.joinable()) later.join();
      std::lock_guard lock(mutex);
      stopped_at.push_back(trainer.step);
    });
  }
  ASSERT_EQ(stopped_at, std::vector<int64_t>(3, stopped_at[0]));
  std::map<std::string, std::string> loaded;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    EXPECT_EQ(trainer.step, stopped_at[0]);
    loaded = DigestsOf(trainer.model);
  });
  EXPECT_EQ(loaded, ReferenceDigests(config, stopped_at[0]));
}

TEST(Checkpointer, ARequestToOneWorkerReachesAllWorkers) {
  TrainConfig config = CheckpointingConfig();
  TemporaryDirectory dir;
  RunRanksAsThreads(3, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir.path(), SystemClock());
    if (comm.rank() == 2) trainer.requests.checkpoint = true;
    trainer.TrainTo(100);
    EXPECT_FALSE(trainer.requests.checkpoint);
    if (comm.rank() == 1) trainer.requests.stops = 1;
    EXPECT_TRUE(trainer.TrainTo(10000));
    EXPECT_LT(trainer.step, 10000);
  });
  EXPECT_EQ(ListCheckpoints(dir.path()).size(), 2u);
}

// With a slow disk (simulated by the clock) and a short grace period, the last checkpoint is an
// increment although a full one is due.
TEST(Checkpointer, WritesAnIncrementWhenTheGracePeriodIsShort) {
  for (const double grace : {0.0, 0.001}) {
    TrainConfig config = CheckpointingConfig();
    config.checkpoint.keep = 100;
    TemporaryDirectory dir;
    CheckpointKind last = CheckpointKind::kFull;
    RunRanksAsThreads(1, [&](Communicator& comm) {
      const TickingClock clock(1);
      Trainer trainer(comm, config, dir.path(), clock, {.grace_seconds = grace});
      // Without a deadline, some of these are full checkpoints.
      int full = 0;
      for (int64_t i = 1; i <= 40; ++i) {
        trainer.TrainTo(i);
        trainer.StopHere();
        last = trainer.recorder.reports.back().kind;
        full += last == CheckpointKind::kFull ? 1 : 0;
      }
      EXPECT_EQ(full > 1, grace == 0) << full << " full checkpoints, grace " << grace;
    });
  }
}

// A disk that writes 1000 bytes per second, by its clock. Meanwhile, a stop that is under way
// learns that less time is left, and gets the time to react.
class SlowDisk : public FileSystem, public Clock {
 public:
  // The deadline is brought forward when a file is begun whose path contains `trigger`.
  SlowDisk(std::string notice_path, std::string trigger, double seconds_left)
      : notice_path_(std::move(notice_path)),
        trigger_(std::move(trigger)),
        seconds_left_(seconds_left) {}

  double MonotonicSeconds() const override {
    ++readings_;
    return seconds_;
  }
  double UnixSeconds() const override { return 1.8e9 + seconds_; }

  int OpenForWriting(const std::string& path) override {
    if (path.find(trigger_) != std::string::npos) {
      const std::lock_guard lock(mutex_);  // no worker goes on writing meanwhile
      if (std::atomic<int64_t>* stops = stops_.exchange(nullptr)) BringForward(*stops);
    }
    return FileSystem::OpenForWriting(path);
  }
  ssize_t Write(int fd, const void* data, size_t bytes) override {
    seconds_.fetch_add(static_cast<double>(bytes) / 1000);
    return FileSystem::Write(fd, data, bytes);
  }

  // The next stop is brought forward through this worker.
  void set_stops(std::atomic<int64_t>* stops) { stops_ = stops; }

 private:
  void BringForward(std::atomic<int64_t>& stops) {
    WriteFileAtomically(notice_path_,
                        fmt::format("{{\"deadline\": {}}}", UnixSeconds() + seconds_left_));
    ++stops;
    // Each worker reads the clock twice between two control syncs.
    const int64_t until = readings_ + 16;
    while (readings_ < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const std::string notice_path_, trigger_;
  const double seconds_left_;
  std::mutex mutex_;
  std::atomic<double> seconds_{0};
  mutable std::atomic<int64_t> readings_{0};
  std::atomic<std::atomic<int64_t>*> stops_{nullptr};
};

// Writes a full checkpoint, a small increment and then, after many rows have changed, the last
// checkpoint: a full one is due. Meanwhile another SIGTERM, to one worker, says that only
// `seconds_left` are left, when a file is begun whose path contains `trigger`. Expects a model that
// resumes at the last step.
std::vector<CheckpointReport> StopAndBringForward(int workers, const std::string& trigger,
                                                  double seconds_left) {
  constexpr int64_t kLast = 20;
  TrainConfig config = CheckpointingConfig();
  config.optimizer.dense.type = "sgd";  // the dense part is a small share of every checkpoint
  config.checkpoint.keep = 100;
  TemporaryDirectory dir;
  SlowDisk disk(dir / "stop.json", trigger, seconds_left);
  std::vector<CheckpointReport> reports;
  {
    const ScopedFileSystem scope(disk);
    RunRanksAsThreads(workers, [&](Communicator& comm) {
      Trainer trainer(comm, config, dir / "checkpoints", disk,
                      {.grace_seconds = 1000, .stop_notice_path = dir / "stop.json"});
      for (const int64_t step : {int64_t{1}, int64_t{2}, kLast}) {
        trainer.TrainTo(step);
        comm.Barrier();
        if (comm.rank() == workers - 1 && step == kLast) disk.set_stops(&trainer.requests.stops);
        comm.Barrier();
        trainer.StopHere();
      }
      comm.Barrier();
      if (comm.rank() != 0) return;
      reports = trainer.recorder.reports;
      EXPECT_EQ(trainer.recorder.stops, 3);
    });
  }
  std::map<std::string, std::string> loaded;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    Trainer trainer(comm, config, dir / "checkpoints", SystemClock());
    EXPECT_EQ(trainer.step, kLast);
    loaded = DigestsOf(trainer.model);
  });
  EXPECT_EQ(loaded, ReferenceDigests(config, kLast));
  return reports;
}

TEST(Checkpointer, AbandonsAFullCheckpointForAFasterIncrement) {
  const std::vector<CheckpointReport> reports = StopAndBringForward(2, ".safetensors", 2);
  ASSERT_EQ(reports.size(), 4u);
  EXPECT_EQ(reports[1].kind, CheckpointKind::kIncremental);
  EXPECT_EQ(reports[2].kind, CheckpointKind::kFull);
  EXPECT_NE(reports[2].error, "") << "it has been abandoned";
  EXPECT_EQ(reports[3].kind, CheckpointKind::kIncremental);
  EXPECT_EQ(reports[3].error, "");
}

// The increment would hold all rows that the full checkpoint was to save, not only those that have
// changed since it was begun. Most of the full one is written: tables m and n take some 13 seconds.
TEST(Checkpointer, DoesNotAbandonAFullCheckpointForASlowerIncrement) {
  const std::vector<CheckpointReport> reports = StopAndBringForward(1, "table.m", 15);
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[2].kind, CheckpointKind::kFull);
  EXPECT_EQ(reports[2].error, "");
}

}  // namespace
}  // namespace renzan
