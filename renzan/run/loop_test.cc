#include "renzan/run/loop.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
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
  void OnEvaluation(int64_t, const BinaryMetrics&, const std::string&) override {
    clock_.seconds += 100;
  }
  void OnAdvice(const std::string&) override {}

  std::vector<StepReport> reports;

 private:
  ManualClock& clock_;
};

void WriteDataset(const std::string& path) {
  DatasetWriter writer(path, {.label = "y", .dense = {"d"}, .categorical = {{"c", 10}}},
                       {.created_by = "test"});
  for (int row = 0; row < 640; ++row) {
    const float dense[] = {static_cast<float>(row % 7)};
    const int64_t ids[] = {row % 10};
    writer.Append(static_cast<float>(row % 2), dense, ids, {});
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

}  // namespace
}  // namespace renzan
