#include "renzan/run/loop.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/base/file/file.h"
#include "renzan/base/thread_pool.h"
#include "renzan/comm/testing.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

// Steps, reports and evaluations take the time given here.
class SlowObserver : public TrainObserver {
 public:
  explicit SlowObserver(ManualClock* clock) : clock_(*clock) {}
  void OnStart(const LoopState&, int64_t) override {}
  void OnStep(int64_t, double) override { clock_.seconds += 1; }
  void OnReport(const StepReport& report) override {
    reports.push_back(report);
    clock_.seconds += 3;
  }
  void OnEvaluation(int64_t, std::span<const EvaluatedOutput>, std::span<const Evaluation>,
                    const std::string&) override {
    clock_.seconds += 100;
  }
  void OnPlateau(double factor) override { factors.push_back(factor); }
  void OnAdvice(const std::string& text) override { advice.push_back(text); }

  std::vector<StepReport> reports;
  std::vector<std::string> advice;
  std::vector<double> factors;

 private:
  ManualClock& clock_;
};

// The rows from `first_positive` on have alternating labels, those before have the label 0.
void WriteDataset(const std::string& path, int first_positive = 0) {
  DatasetWriter writer(path, {.label = "y", .dense = {"d"}, .categorical = {{"c", 10}}},
                       {.created_by = "test"});
  for (int row = 0; row < 640; ++row) {
    const float dense[] = {static_cast<float>(row % 7)};
    const int64_t ids[] = {row % 10};
    writer.Append(row < first_positive ? 0.0f : static_cast<float>(row % 2), dense, ids, {});
  }
  writer.Finish();
}

// Users compare the throughput with the time that a run takes.
TEST(Train, ThroughputCountsReportsButNotEvaluations) {
  TemporaryDirectory dir;
  WriteDataset(dir / "data");
  const Dataset dataset(dir / "data");
  TrainConfig config = SmallConfig();
  config.model.tables.clear();
  config.training.log_every = 2;
  config.training.eval_every = 4;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, dataset.schema(), comm, pool);
    ManualClock clock;
    SlowObserver observer(&clock);
    LoopState state;
    state.window.resize(1);
    const Split split{&dataset, {0, dataset.num_rows()}};
    EXPECT_TRUE(Train(config, 8, split, split, model.step(), comm, clock,
                      {.observer = &observer, .should_stop = [](int64_t) { return false; }},
                      &state));
    ASSERT_EQ(observer.reports.size(), 4u);
    const double samples = 2 * 64;
    EXPECT_DOUBLE_EQ(observer.reports[0].samples_per_second, samples / 2);
    for (size_t i = 1; i < 4; ++i)
      EXPECT_DOUBLE_EQ(observer.reports[i].samples_per_second, samples / (3 + 2)) << i;
    EXPECT_DOUBLE_EQ(state.seconds, 2 + 3 * 5);
  });
}

// The advice given during a run of `steps` steps over the first `rows` rows.
std::vector<std::string> AdviceOf(const Dataset& dataset, int64_t rows, int64_t first_step = 0) {
  TrainConfig config = SmallConfig();
  config.model.tables.clear();
  std::vector<std::string> advice;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, dataset.schema(), comm, pool);
    ManualClock clock;
    SlowObserver observer(&clock);
    LoopState state;
    state.step = first_step;
    state.window.resize(1);
    EXPECT_TRUE(Train(config, 5, {&dataset, {0, rows}}, std::nullopt, model.step(), comm, clock,
                      {.observer = &observer, .should_stop = [](int64_t) { return false; }},
                      &state));
    advice = observer.advice;
  });
  return advice;
}

TEST(Train, WarnsOfOneClassFirstAndAtTheEnd) {
  TemporaryDirectory dir;
  WriteDataset(dir / "one", 640);
  const std::vector<std::string> one = AdviceOf(Dataset(dir / "one"), 640);
  ASSERT_EQ(one.size(), 2u);
  EXPECT_NE(one[0].find("label 'y' is the same in all rows that have it"), std::string::npos)
      << one[0];
  EXPECT_NE(one[1].find("label 'y' was the same in all rows that were trained on"),
            std::string::npos)
      << one[1];
  // Also if the run has resumed.
  EXPECT_EQ(AdviceOf(Dataset(dir / "one"), 640, 4).size(), 2u);

  // Known only after training, and only by a process that has seen all of it.
  WriteDataset(dir / "later", 320);
  const Dataset later(dir / "later");
  const std::vector<std::string> first_half = AdviceOf(later, 320);
  ASSERT_EQ(first_half.size(), 1u);
  EXPECT_NE(first_half[0].find("the same in all rows that were trained on"), std::string::npos);
  EXPECT_TRUE(AdviceOf(later, 320, 4).empty());
  EXPECT_TRUE(AdviceOf(later, 640).empty());
}

// The model after a run whose rates are lowered again and again, which is stopped wherever
// `stops_after` says and continued by `world` workers, and the factors that observers saw. First it
// is a run of `shorter` steps that is stopped in its last evaluation.
struct PlateauRun {
  std::map<std::string, std::string> digests;
  std::vector<double> factors;
  std::vector<int64_t> state;
};

PlateauRun TrainWithPlateau(const Dataset& dataset, const PlateauConfig& plateau, int world,
                            int64_t stops_after, int64_t shorter = 0) {
  TrainConfig config = SmallConfig();
  config.model.tables.clear();
  config.training.epochs = 10;
  config.training.eval_every = 3;
  config.optimizer.schedule.plateau = plateau;
  const Split train{&dataset, {0, 320}}, eval{&dataset, {320, 640}};
  PlateauRun run;
  std::mutex mutex;
  RunRanksAsThreads(world, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel model(config, dataset.schema(), comm, pool);
    ManualClock clock;
    SlowObserver observer(&clock);
    LoopState state;
    if (shorter > 0) {
      state.window.resize(1);
      int asked_at_end = 0;  // after the last step, and then in the evaluation
      EXPECT_FALSE(Train(
          config, shorter, train, eval, model.step(), comm, clock,
          {.observer = comm.rank() == 0 ? &observer : nullptr,
           .should_stop = [&](int64_t done) { return done == shorter && ++asked_at_end > 1; }},
          &state));
      EXPECT_TRUE(state.evaluation_due);
    }
    for (bool finished = false; !finished;) {
      // What a checkpoint keeps of it.
      const ProgressTensors saved = state.step > 0 ? SaveProgress(comm, state) : ProgressTensors();
      LoopState restored;
      restored.step = state.step;
      restored.window.resize(1);
      RestoreProgress(saved, comm.rank(), &restored);
      state = restored;
      model.MakeNewStep();
      const int64_t until = state.step + stops_after;
      finished = Train(config, 50, train, eval, model.step(), comm, clock,
                       {.observer = comm.rank() == 0 ? &observer : nullptr,
                        .should_stop = [&](int64_t done) { return done >= until; }},
                       &state);
    }
    std::lock_guard lock(mutex);
    for (const auto& [name, digest] : DigestsOf(model))
      EXPECT_EQ(run.digests.emplace(name, digest).first->second, digest);
    if (comm.rank() == 0) run.factors = observer.factors;
    run.state = state.plateau.ToIntegers();
  });
  return run;
}

// It continues wherever it is interrupted, during evaluations too, on any number of workers.
TEST(Train, PlateausLowerRatesAlikeHoweverTheRunIsInterrupted) {
  TemporaryDirectory dir;
  WriteDataset(dir / "data");
  const Dataset dataset(dir / "data");
  const PlateauConfig plateau{.patience = 1, .min_delta = 0.1, .factor = 0.5, .floor = 0.1};
  const PlateauRun whole = TrainWithPlateau(dataset, plateau, 1, 1000);
  EXPECT_EQ(whole.factors, (std::vector<double>{0.5, 0.25, 0.125, 0.1}));
  const std::pair<int, int64_t> interrupted[] = {{1, 1}, {1, 2}, {1, 7}, {2, 3}, {3, 10}};
  for (const auto& [world, stops_after] : interrupted) {
    const PlateauRun parts = TrainWithPlateau(dataset, plateau, world, stops_after);
    EXPECT_EQ(parts.digests, whole.digests) << world << " workers, " << stops_after;
    EXPECT_EQ(parts.factors, whole.factors);
    EXPECT_EQ(parts.state, whole.state);
  }
  const PlateauRun constant = TrainWithPlateau(dataset, {}, 1, 1000);
  EXPECT_TRUE(constant.factors.empty());
  EXPECT_NE(constant.digests, whole.digests);
}

// A run of `shorter` steps is stopped in the evaluation at its end; what is saved there goes on to
// 50 steps, as a run of 50 from the beginning does.
TEST(Train, AnUnfinishedLastEvaluationCountsOnlyWhereTheLongerRunEvaluates) {
  TemporaryDirectory dir;
  WriteDataset(dir / "data");
  const Dataset dataset(dir / "data");
  const PlateauConfig plateau{.patience = 1, .min_delta = 0.1, .factor = 0.5, .floor = 0.1};
  const PlateauRun whole = TrainWithPlateau(dataset, plateau, 1, 1000);
  for (const int64_t shorter : {1, 4, 5, 6}) {
    const PlateauRun parts = TrainWithPlateau(dataset, plateau, 1, 1000, shorter);
    EXPECT_EQ(parts.digests, whole.digests) << shorter;
    EXPECT_EQ(parts.factors, whole.factors) << shorter;
    EXPECT_EQ(parts.state, whole.state) << shorter;
  }
}

}  // namespace
}  // namespace renzan
