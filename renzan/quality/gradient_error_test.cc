#include "renzan/quality/gradient_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "renzan/comm/testing.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

// The errors in the last of a few steps, on each worker.
std::vector<std::vector<WireError>> ErrorsOfTraining(const std::string& backward, int workers,
                                                     int64_t error_feedback_rows = 0) {
  TrainConfig config = SmallConfig();
  config.training.batch_size = 512;
  config.comm.backward = backward;
  config.comm.error_feedback_rows = error_feedback_rows;
  std::vector<std::vector<WireError>> by_worker;
  std::mutex mutex;
  RunRanksAsThreads(workers, [&](Communicator& comm) {
    ThreadPool pool(2);
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(2);
    for (int64_t step = 0; step < 4; ++step)
      model.Run(MakeSlice(model, step), step, metrics, nullptr, step == 3);
    const std::vector<WireError> errors =
        MergeErrors(comm, config.numerics.virtual_workers, model.embeddings().GradientErrors());
    std::lock_guard lock(mutex);
    by_worker.push_back(errors);
  });
  return by_worker;
}

double Worst(const std::string& backward, int64_t error_feedback_rows = 0) {
  return WorstOf(ErrorsOfTraining(backward, 1, error_feedback_rows)[0])->error_to_noise;
}

TEST(GradientError, IsTheSameOnAllWorkersHoweverMany) {
  const std::vector<WireError> expected = ErrorsOfTraining("int4", 1)[0];
  ASSERT_EQ(expected.size(), 4);
  for (const int workers : {2, 3, 7})
    for (const std::vector<WireError>& errors : ErrorsOfTraining("int4", workers))
      for (size_t t = 0; t < errors.size(); ++t) {
        EXPECT_GT(errors[t].lost, 0);
        EXPECT_EQ(errors[t].lost, expected[t].lost) << workers;
        EXPECT_EQ(errors[t].noise, expected[t].noise) << workers;
      }
}

TEST(GradientError, GrowsWithFewerBits) {
  EXPECT_FALSE(WorstOf(ErrorsOfTraining("fp32", 1)[0]));
  const double bf16 = Worst("bf16"), int8 = Worst("int8"), int4 = Worst("int4");
  EXPECT_GT(bf16, 0);
  EXPECT_GT(int8, 2 * bf16);
  EXPECT_GT(int4, 50 * int8);
  EXPECT_LT(int4, 1);
  // Error that is kept is not lost, unless another row takes its place.
  EXPECT_LT(Worst("int4", 1024), int4 / 2);
}

TEST(WorstOf, IgnoresTablesWithoutNoise) {
  EXPECT_FALSE(WorstOf({}));
  EXPECT_FALSE(WorstOf(std::vector<WireError>{{.lost = 1, .noise = 0}}));
  const std::vector<WireError> tables = {{.lost = 1, .noise = 0},
                                         {.lost = 1, .noise = 4},
                                         {.lost = 3, .noise = 4},
                                         {.lost = 2, .noise = 4}};
  EXPECT_EQ(WorstOf(tables)->table, 2);
  EXPECT_EQ(WorstOf(tables)->error_to_noise, 0.75);
}

TEST(GradientErrorAdvice, SaysWhatItCostsAndWhatToDo) {
  CommConfig comm{.backward = "int4"};
  EXPECT_EQ(GradientErrorAdvice("C5", 0.1, comm), std::nullopt);
  EXPECT_THAT(GradientErrorAdvice("C5", 0.25, comm),
              Optional(AllOf(HasSubstr(
                  "comm.backward: int4: the rounding error of the gradients of C5 is 25 % of "
                  "their own noise, as if training.batch_size were 20 % smaller: use a wider "
                  "codec, or set comm.error_feedback_rows"))));
  comm.error_feedback_rows = 64;
  EXPECT_THAT(GradientErrorAdvice("C5", 0.25, comm),
              Optional(HasSubstr("20 % smaller: use a wider codec (")));
}

}  // namespace
}  // namespace renzan
