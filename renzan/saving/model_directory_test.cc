#include "renzan/saving/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "renzan/base/clock_testing.h"
#include "renzan/base/file/file.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/saving/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

// A run directory that trains as told. `clock` puts what it saves into an order.
class TrainedRun {
 public:
  const std::string& path() const { return dir_.path(); }

  // As a run that begins or goes on, and as one that is done.
  void RecordFinished(bool finished) {
    WriteRunManifest(dir_ / "manifest.json", {.model_sha256 = finished ? "abc" : ""});
  }

  // Trains to `steps` with a checkpoint there. If `model`, saves one as that of step `*model`.
  void Train(int64_t steps, std::optional<int64_t> model) {
    RunRanksAsThreads(1, [&](Communicator& comm) {
      Trainer trainer(comm, CheckpointingConfig(), dir_ / "checkpoints", clock_);
      trainer.TrainTo(steps);
      trainer.StopHere();
      clock_.seconds += 1;
      if (model) trainer.checkpointer->SaveModel(dir_ / "model", *model);
      clock_.seconds += 1;
    });
  }

 private:
  TemporaryDirectory dir_;
  ManualClock clock_;
};

TEST(FindModel, OfAFinishedRunIsItsModel) {
  TrainedRun run;
  run.Train(2, 2);
  run.RecordFinished(true);
  const ModelPlace place = FindModel(run.path());
  EXPECT_EQ(place.dir, run.path() + "/model");
  EXPECT_EQ(place.note, "");
}

// The best evaluation's model is older than the newest checkpoint, but was saved after it.
TEST(FindModel, OfAFinishedRunIsItsModelAlsoIfThatIsOfAnEarlierStep) {
  TrainedRun run;
  run.Train(4, 2);
  for (const bool recorded : {true, false}) {
    run.RecordFinished(recorded);
    EXPECT_EQ(FindModel(run.path()).dir, run.path() + "/model");
  }
}

TEST(FindModel, OfARunThatHasGoneOnIsItsNewestCheckpoint) {
  for (const int64_t model_step : {1, 2}) {
    TrainedRun run;
    run.Train(2, model_step);
    run.RecordFinished(false);
    run.Train(5, std::nullopt);
    const ModelPlace place = FindModel(run.path());
    EXPECT_EQ(place.dir, run.path() + "/checkpoints/step-00000005");
    EXPECT_EQ(place.note, run.path() + " has gone on since its model of step " +
                              std::to_string(model_step) +
                              ": using step-00000005, its newest checkpoint");
    EXPECT_EQ(FindModel(run.path() + "/model").dir, run.path() + "/model");
    run.Train(7, 7);
    EXPECT_EQ(FindModel(run.path()).dir, run.path() + "/model");
  }
}

TEST(FindModel, OfAnUnfinishedRunIsItsNewestCheckpoint) {
  TrainedRun run;
  run.Train(2, std::nullopt);
  const ModelPlace place = FindModel(run.path());
  EXPECT_EQ(place.dir, run.path() + "/checkpoints/step-00000002");
  EXPECT_THAT(place.note, HasSubstr("is an unfinished run: using step-00000002"));
}

}  // namespace
}  // namespace renzan
