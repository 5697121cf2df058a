#pragma once

// For tests of checkpointing: a worker that trains a small model with a checkpointer.

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/comm/testing.h"
#include "renzan/saving/checkpointer.h"
#include "renzan/saving/resume.h"
#include "renzan/step/testing.h"

namespace renzan {

struct Recorder : CheckpointObserver {
  std::vector<CheckpointReport> reports;
  int stops = 0, last_checkpoints = 0;
  void OnCheckpoint(const CheckpointReport& report) override { reports.push_back(report); }
  void OnStopping(int64_t, bool saves) override {
    ++stops;
    last_checkpoints += saves ? 1 : 0;
  }
};

// A worker that trains with a checkpointer, resuming from the newest checkpoint in `dir`.
struct Trainer {
  struct Options {
    double grace_seconds = 0;
    std::string stop_notice_path;
    int64_t most_copied_bytes = std::numeric_limits<int64_t>::max();
    DatasetSchema schema = TestSchema();
    int threads = 1;
    const ShardingPlan* plan = nullptr;  // null: the configuration's
    std::string config_yaml = "seed: 9\n";
    std::map<std::string, std::string> run = {};
  };
  Trainer(Communicator& comm_in, const TrainConfig& config, const std::string& dir,
          const Clock& clock)
      : Trainer(comm_in, config, dir, clock, Options()) {}
  Trainer(Communicator& comm_in, const TrainConfig& config, const std::string& dir,
          const Clock& clock, const Options& options)
      : comm(comm_in),
        schema(options.schema),
        pool(options.threads),
        model(config, schema, comm_in, pool, InitialValues::kDraw, options.plan),
        metrics(model.MakeMetrics()) {
    const std::vector<std::string> paths = CheckpointsToResume(dir);
    std::optional<CheckpointLineage> lineage;
    if (!paths.empty()) {
      const ResumePoint point = LoadNewest(paths, model.Updated(), comm);
      step = point.step;
      lineage = point.lineage;
    }
    checkpointer.emplace(Checkpointer::Options{.dir = dir,
                                               .config = config.checkpoint,
                                               .config_yaml = options.config_yaml,
                                               .run = options.run,
                                               .stop_notice_path = options.stop_notice_path,
                                               .grace_seconds = options.grace_seconds,
                                               .most_copied_bytes = options.most_copied_bytes,
                                               .requests = &requests,
                                               .clock = &clock,
                                               .observer = comm.rank() == 0 ? &recorder : nullptr},
                         model, comm, step, int64_t{1} << 40, lineage,
                         [] { return ProgressTensors(); });
  }

  // Returns true if it was told to stop.
  bool TrainTo(int64_t end) {
    while (step < end) {
      model.Run(MakeSlice(model, step, schema), step, metrics);
      ++step;
      if (checkpointer->ShouldStop(step)) return true;
    }
    return false;
  }

  // Requests a stop, which writes a checkpoint at this step and waits for it.
  void StopHere() {
    requests.stops = 1;
    while (!checkpointer->ShouldStop(step)) {
    }
    requests.stops = 0;
  }

  Communicator& comm;
  const DatasetSchema schema;
  ThreadPool pool;
  TestModel model;
  std::vector<OutputMetrics> metrics;
  RunRequests requests;
  Recorder recorder;
  int64_t step = 0;
  std::optional<Checkpointer> checkpointer;
};

inline TrainConfig CheckpointingConfig() {
  TrainConfig config = SmallConfig();
  config.optimizer.dense.type = "adam";
  config.optimizer.sparse.type = "rowwise_adagrad";
  config.checkpoint.every = "0";
  return config;
}

// The model after `steps` steps without checkpoints.
inline std::map<std::string, std::string> ReferenceDigests(const TrainConfig& config,
                                                           int64_t steps) {
  std::map<std::string, std::string> digests;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(1);
    for (int64_t step = 0; step < steps; ++step) model.Run(MakeSlice(model, step), step, metrics);
    digests = DigestsOf(model);
  });
  return digests;
}

}  // namespace renzan
