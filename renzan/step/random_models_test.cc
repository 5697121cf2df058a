// A run is a function of configuration, data and seed alone: random models, trained by random
// numbers of workers and threads under random sharding plans, stopped again and again without
// notice and resumed by others, have the bits of one worker's run. RENZAN_TEST_SEEDS=FIRST..LAST
// (or one seed) draws other models.

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "renzan/base/random_testing.h"
#include "renzan/model/blocks/types.h"
#include "renzan/model/reach.h"
#include "renzan/plan/testing.h"
#include "renzan/saving/testing.h"
#include "renzan/step/random_models_for_test.h"

namespace renzan {
namespace {

std::string Describe(const TrainConfig& config) {
  TrainConfig copy = config;
  return PrintConfig([&](ConfigFields& fields) { copy.Describe(fields); });
}

// One worker, one thread, no checkpoint.
std::map<std::string, std::string> TrainUndisturbed(const RandomModel& model) {
  std::map<std::string, std::string> digests;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TestModel hybrid(model.config, model.schema, comm, pool);
    std::vector<OutputMetrics> metrics = hybrid.MakeMetrics();
    for (int64_t step = 0; step < model.steps; ++step)
      hybrid.Run(MakeSlice(hybrid, step, model.schema), step, metrics);
    EXPECT_TRUE(hybrid.finiteness().ok());
    digests = DigestsOf(hybrid);
  });
  return digests;
}

std::map<std::string, std::string> TrainDisturbed(const RandomModel& model, uint64_t seed) {
  Draws draw(seed);
  const std::vector<TableSpec> tables = TestSpec(model.config, model.schema).tables;
  TemporaryDirectory dir;
  std::map<std::string, std::string> digests;
  int64_t done = 0;
  for (uint64_t attempt = 0; done < model.steps; ++attempt) {
    const int world = 1 + draw.Below(std::min(7, model.config.numerics.virtual_workers));
    const int threads = 1 + draw.Below(2), steps = 1 + draw.Below(6);
    const bool noticed = draw.OneIn(3);  // otherwise killed, perhaps with a checkpoint in flight
    const ShardingPlan plan = RandomPlan(tables, world, seed + attempt);
    std::mutex mutex;
    RunRanksAsThreads(world, [&](Communicator& comm) {
      Trainer trainer(comm, model.config, dir.path(), SystemClock(),
                      {.schema = model.schema, .threads = threads, .plan = &plan});
      trainer.TrainTo(std::min(model.steps, trainer.step + steps));
      if (noticed) trainer.StopHere();
      std::lock_guard lock(mutex);
      done = trainer.step;
      if (done < model.steps) return;
      for (const auto& [name, digest] : DigestsOf(trainer.model)) {
        EXPECT_EQ(digests.emplace(name, digest).first->second, digest) << "copies differ";
      }
    });
  }
  return digests;
}

TEST(RandomModels, HaveTheBitsOfOneWorkersRun) {
  const auto [first, last] = TestSeeds(LastSeedOfTheCatalogue());
  std::set<std::string> untried{kBlocksType};
  for (const CatalogueEntry& entry : Catalogue()) untried.insert(entry.name);
  for (uint64_t seed = first; seed <= last; ++seed) {
    const RandomModel model = DrawModel(seed);
    untried.erase(model.config.model.type);
    const std::map<std::string, std::string> expected = TrainUndisturbed(model);
    for (uint64_t i = 0; i < (model.config.model.type == kBlocksType ? 2 : 1); ++i)
      ASSERT_EQ(TrainDisturbed(model, 1000 + 100 * seed + i), expected)
          << "model " << seed << ", disturbance " << i << "\n"
          << Describe(model.config);
  }
  // Unless the environment asks for few seeds.
  EXPECT_TRUE(untried.empty() || last - first < LastSeedOfTheCatalogue())
      << fmt::format("never drawn: {}", fmt::join(untried, ", "));
}

// Drawing alone, without training. Graphs have every type of block, so that a new one must be drawn
// before this passes; and what is drawn is what a run would train.
TEST(RandomModels, HaveEveryBlock) {
  std::set<std::string> undrawn;
  for (const std::string& type : BlockTypeNames()) undrawn.insert(type);
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const RandomModel model = DrawModel(seed);
    SCOPED_TRACE(seed);
    EXPECT_NO_THROW(CheckInputsReachLogit(ModelOptionsOf(model.config, model.schema)))
        << Describe(model.config);
    for (const auto& [name, block] : model.config.model.blocks) undrawn.erase(block.type);
  }
  EXPECT_TRUE(undrawn.empty()) << fmt::format("never drawn: {}", fmt::join(undrawn, ", "));
}

}  // namespace
}  // namespace renzan
