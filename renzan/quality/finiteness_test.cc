#include "renzan/quality/finiteness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "renzan/base/error.h"
#include "renzan/comm/testing.h"
#include "renzan/embedding/testing.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Finiteness, ReportsTheEarliestStep) {
  const std::vector<Finiteness> workers = {{.bad_step = 9, .predictions = true},
                                           {},
                                           {.bad_step = 7, .tables = true},
                                           {.bad_step = 7, .dense = true}};
  const Finiteness all = Merge(workers);
  EXPECT_EQ(all.bad_step, 7);
  EXPECT_FALSE(all.predictions);
  EXPECT_TRUE(all.dense && all.tables);
  EXPECT_TRUE(Merge(std::vector<Finiteness>(3)).ok());
}

TEST(Finiteness, AllWorkersFailTheSameWay) {
  RunRanksAsThreads(3, [](Communicator& comm) {
    CheckFinite(comm, {});
    Finiteness mine;
    if (comm.rank() == 1) mine = {.bad_step = 12, .tables = true};
    try {
      CheckFinite(comm, mine);
      ADD_FAILURE() << "no error on rank " << comm.rank();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kSoftware);
      EXPECT_THAT(error.what(), HasSubstr("at step 12: NaN or infinite rows of embedding tables;"));
    }
  });
}

// Trains three steps; `spoil` makes something infinite before the second.
Finiteness AfterThreeSteps(int threads, const std::function<void(TestModel&, Batch&)>& spoil) {
  TrainConfig config = SmallConfig();
  config.optimizer.dense.type = config.optimizer.sparse.type = "adagrad";
  Finiteness seen;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(threads);
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(static_cast<size_t>(threads));
    for (int64_t step = 0; step < 3; ++step) {
      Batch batch = MakeSlice(model, step);
      EXPECT_TRUE(step > 1 || model.finiteness().ok());
      if (step == 1) spoil(model, batch);
      model.Run(batch, step, metrics);
    }
    seen = model.finiteness();
  });
  return seen;
}

TEST(Step, DetectsWhatIsNotFinite) {
  for (const int threads : {1, 2}) {
    // A huge label does not affect the predictions, which come before the update.
    Finiteness seen = AfterThreeSteps(threads, [](TestModel&, Batch& batch) {
      batch.label[5] = std::numeric_limits<float>::max();
    });
    EXPECT_EQ(seen.bad_step, 2);
    EXPECT_TRUE(!seen.predictions && seen.dense && seen.tables);

    seen = AfterThreeSteps(threads, [](TestModel&, Batch& batch) { batch.dense[4] = kInfinity; });
    EXPECT_EQ(seen.bad_step, 2);
    EXPECT_TRUE(seen.predictions);

    // Only a state is infinite: √∞ in the denominator keeps the weights finite.
    seen = AfterThreeSteps(threads, [](TestModel& model, Batch& batch) {
      RowStore& store = *model.embeddings().shards()[1].store;
      const int64_t row = batch.categorical[1].values[3];
      std::vector<float> state = StateOf(store);
      state[static_cast<size_t>(row) * 8 + 7] = kInfinity;
      store.SetState(0, state);
    });
    EXPECT_EQ(seen.bad_step, 2);
    EXPECT_TRUE(!seen.predictions && !seen.dense && seen.tables);

    seen = AfterThreeSteps(threads, [](TestModel& model, Batch&) {
      model.dense_optimizer().states()[0].values[0] = kInfinity;
    });
    EXPECT_EQ(seen.bad_step, 2);
    EXPECT_TRUE(!seen.predictions && seen.dense && !seen.tables);
  }
}

TEST(Step, IsFiniteWhenNothingIsSpoiled) {
  EXPECT_TRUE(AfterThreeSteps(2, [](TestModel&, Batch&) {}).ok());
}

}  // namespace
}  // namespace renzan
