#include "renzan/run/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "renzan/base/error.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/testing.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

const ProgramFacts kFacts = {
    .build = "0.1.0-3f9a0c51d2be", .isa = "avx2", .libraries = {{"libc", "glibc 2.36"}}};

// The error of three workers after `change` on worker 1; all workers must report the same error.
std::string ErrorAfter(const std::function<void(TrainConfig&, ProgramFacts&)>& change,
                       const TrainConfig& of_all = SmallConfig()) {
  std::vector<std::string> errors(3);
  RunRanksAsThreads(3, [&](Communicator& comm) {
    TrainConfig config = of_all;
    ProgramFacts facts = kFacts;
    if (comm.rank() == 1) change(config, facts);
    try {
      CheckSameRun(comm, config, facts);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      errors[static_cast<size_t>(comm.rank())] = error.what();
    }
  });
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], errors[0]);
  return errors[0];
}

TEST(CheckSameRun, NamesTheDifference) {
  EXPECT_THAT(ErrorAfter([](TrainConfig&, ProgramFacts& f) { f.build = "0.1.0-000000000000"; }),
              HasSubstr("worker 1 has a different build than worker 0 (0.1.0-000000000000 vs "
                        "0.1.0-3f9a0c51d2be)"));
  EXPECT_THAT(ErrorAfter([](TrainConfig&, ProgramFacts& f) { f.isa = "sse4"; }),
              HasSubstr("different instruction set than worker 0 (sse4 vs avx2)"));
  EXPECT_THAT(ErrorAfter([](TrainConfig&, ProgramFacts& f) { f.libraries["libc"] = "glibc 2.39"; }),
              HasSubstr("different version of libc than worker 0 (glibc 2.39 vs glibc 2.36)"));
}

TEST(CheckSameRun, WorkersMayDifferInTheWidthOfTheirVectors) {
  EXPECT_EQ(ErrorAfter([](TrainConfig&, ProgramFacts& f) { f.isa = "avx512"; }), "");
}

TEST(CheckSameRun, NamesTheFirstKeyThatDiffers) {
  EXPECT_THAT(
      ErrorAfter([](TrainConfig& c, ProgramFacts&) {
        c.optimizer.sparse.learning_rate = 0.5;
        c.model.top_mlp = {10, 7};
      }),
      HasSubstr("different configuration than worker 0: model.top_mlp is [10, 7], not [10, 6]"));
  EXPECT_THAT(
      ErrorAfter([](TrainConfig& c, ProgramFacts&) { c.model.tables["n"].pooling = "sum"; }),
      HasSubstr("model.tables.\"n\".pooling is sum, not mean"));
}

TEST(CheckSameRun, ComparesTablesWhoseNamesShareAPrefix) {
  RunRanksAsThreads(2, [](Communicator& comm) {
    TrainConfig config = SmallConfig();
    config.model.tables["user:geo"].pooling = "sum";
    config.model.tables["user:id"].pooling = comm.rank() == 0 ? "sum" : "mean";
    try {
      CheckSameRun(comm, config, kFacts);
      ADD_FAILURE() << "no error on rank " << comm.rank();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("model.tables.\"user:id\".pooling is mean, not sum"));
    }
  });
}

TEST(CheckSameRun, PathsAndThreadsMayDiffer) {
  TrainConfig of_all = SmallConfig();
  of_all.checkpoint.stage = "/stage";
  EXPECT_EQ(ErrorAfter(
                [](TrainConfig& c, ProgramFacts&) {
                  c.run_dir = "elsewhere";
                  c.checkpoint.dir = "elsewhere/checkpoints";
                  c.checkpoint.stage = "/nvme/stage";
                  c.data.cache.directory = "/nvme/cache";
                  c.data.cache.size = "1GiB";
                  c.threads = 7;
                },
                of_all),
            "");
}

TEST(CheckSameRun, AllStageCheckpointsOrNone) {
  EXPECT_THAT(ErrorAfter([](TrainConfig& c, ProgramFacts&) { c.checkpoint.stage = "/nvme"; }),
              HasSubstr("different checkpoint.stage than worker 0 (a directory vs none)"));
}

TEST(FactsOfThisProgram, AreComplete) {
  const ProgramFacts facts = FactsOfThisProgram("3f9a0c51d2be", "avx2");
  EXPECT_EQ(facts.build, RENZAN_VERSION "-3f9a0c51d2be");
  EXPECT_THAT(facts.libraries.at("libc"), HasSubstr("glibc 2"));
  EXPECT_FALSE(facts.libraries.at("libc").empty());
}

TEST(CheckSameDenseParameters, RejectsReplicasThatDiffer) {
  for (const int bad_rank : {-1, 2}) {
    for (const bool state : {false, true}) {
      RunRanksAsThreads(3, [&](Communicator& comm) {
        TrainConfig config = SmallConfig();
        config.optimizer.dense.type = "adam";
        ThreadPool pool(1);
        TestModel model(config, TestSchema(), comm, pool);
        if (comm.rank() == bad_rank) {
          // One unit in the last place of one number.
          float& value =
              state ? model.dense_optimizer().states()[1].values[3] : model.parameters()[3];
          value = std::nextafter(value, 1.0f);
        }
        if (bad_rank < 0) return CheckSameDenseParameters(comm, model.Updated());
        try {
          CheckSameDenseParameters(comm, model.Updated());
          ADD_FAILURE() << "no error on rank " << comm.rank();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kConfig);
          EXPECT_THAT(error.what(), HasSubstr("worker 2 has a different set of initial dense"));
        }
      });
    }
  }
}

// Ranks may be dealt out to machines in turn, as mpirun --map-by node does.
TEST(FindLocalRank, CountsTheWorkersOfAMachine) {
  const std::vector<std::string> machines = {"a", "b", "a", "c", "b", "a"};
  const std::vector<int> expected = {0, 0, 1, 0, 1, 2};
  RunRanksAsThreads(6, [&](Communicator& comm) {
    const size_t rank = static_cast<size_t>(comm.rank());
    FindLocalRank(comm, machines[rank]);
    EXPECT_EQ(comm.local_rank(), expected[rank]) << "rank " << rank;
  });
}

}  // namespace
}  // namespace renzan
