// Frozen blocks and tables, and those with learning rates of their own.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/testing.h"
#include "renzan/run_spec/parameter_groups.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

struct Trained {
  std::map<std::string, std::vector<float>> blocks;  // parameters, padding included
  std::map<std::string, std::vector<std::vector<float>>> states;
  std::map<std::string, std::string> tables;  // digests
  double gradient_norm = 0;
};

Trained TrainSome(const TrainConfig& config, int64_t steps) {
  Trained trained;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(2);
    TestModel model(config, TestSchema(), comm, pool);
    std::vector<OutputMetrics> metrics(2);
    for (int64_t step = 0; step < steps; ++step) model.Run(MakeSlice(model, step), step, metrics);
    for (const Parameter& each : model.model().layout().parameters()) {
      const auto append = [&](std::span<const float> from, std::vector<float>* to) {
        const auto part =
            from.subspan(static_cast<size_t>(each.offset), static_cast<size_t>(each.size));
        to->insert(to->end(), part.begin(), part.end());
      };
      append(model.parameters().span(), &trained.blocks[each.block]);
      auto& states = trained.states[each.block];
      states.resize(model.dense_optimizer().states().size());
      for (size_t s = 0; s < states.size(); ++s)
        append(model.dense_optimizer().states()[s].values.span(), &states[s]);
    }
    trained.tables = DigestsOf(model);
    trained.tables.erase("dense");
    trained.gradient_norm = model.step().gradient_norm();
  });
  return trained;
}

TrainConfig WithEverything() {
  TrainConfig config = SmallConfig();
  config.optimizer.dense = {.type = "adam", .learning_rate = 0.01, .weight_decay = 0.1};
  config.optimizer.sparse = {.type = "adam", .learning_rate = 0.01, .weight_decay = 0.1};
  config.optimizer.max_gradient_norm = 0.01;
  return config;
}

// What comes before a frozen block is trained by the gradients that flow through it.
TEST(Frozen, BlocksAndTablesKeepEveryBit) {
  TrainConfig config = WithEverything();
  const Trained before = TrainSome(config, 0), all = TrainSome(config, 3);
  ASSERT_GE(all.blocks.size(), 2u);
  config.optimizer.blocks["top"].frozen = true;
  config.model.tables["a"].frozen = true;
  const Trained some = TrainSome(config, 3);
  for (const auto& [name, values] : some.blocks) {
    EXPECT_EQ(values == before.blocks.at(name), name == "top") << name;
    EXPECT_EQ(some.states.at(name) == before.states.at(name), name == "top") << name;
    EXPECT_NE(values, all.blocks.at(name)) << name;
  }
  for (const auto& [name, digest] : some.tables)
    EXPECT_EQ(digest == before.tables.at(name), name == "embedding.a") << name;
}

// The norm by which gradients are clipped is that of what is trained.
TEST(Frozen, GradientsCountForNoNorm) {
  TrainConfig config = WithEverything();
  const Trained all = TrainSome(config, 1);
  double squares = 0;
  for (const auto& [name, values] : all.blocks) {
    TrainConfig one = config;
    for (const auto& [other, unused] : all.blocks)
      one.optimizer.blocks[other].frozen = other != name;
    for (const CategoricalFeature& table : TestSchema().categorical)
      one.model.tables[table.name].frozen = true;
    const double norm = TrainSome(one, 1).gradient_norm;
    EXPECT_GT(norm, 0) << name;
    squares += norm * norm;
  }
  for (const CategoricalFeature& table : TestSchema().categorical) {
    TrainConfig one = config;
    for (const auto& [name, unused] : all.blocks) one.optimizer.blocks[name].frozen = true;
    for (const CategoricalFeature& other : TestSchema().categorical)
      one.model.tables[other.name].frozen = other.name != table.name;
    const double norm = TrainSome(one, 1).gradient_norm;
    EXPECT_GT(norm, 0) << table.name;
    squares += norm * norm;
  }
  EXPECT_NEAR(squares, all.gradient_norm * all.gradient_norm, 1e-9 * squares);
}

// A block at half the rate of a run moves as in a run at that rate.
TEST(Frozen, LearningRatesOfBlocksAreFactors) {
  TrainConfig config = SmallConfig();
  config.optimizer.dense = {.type = "adagrad", .learning_rate = 0.25, .weight_decay = 0.5};
  const Trained whole = TrainSome(config, 1);
  config.optimizer.dense.learning_rate = 0.125;
  const Trained half = TrainSome(config, 1);
  config.optimizer.dense.learning_rate = 0.25;
  config.optimizer.blocks["top"].learning_rate_factor = 0.5;
  const Trained mixed = TrainSome(config, 1);
  for (const auto& [name, values] : mixed.blocks) {
    EXPECT_EQ(values == half.blocks.at(name), name == "top") << name;
    EXPECT_EQ(values == whole.blocks.at(name), name != "top") << name;
  }
}

TEST(Frozen, AnUnknownBlockIsAnErrorThatNamesThose) {
  TrainConfig config = SmallConfig();
  const auto model = MakeModel(ModelOptionsOf(config, TestSchema()));
  config.optimizer.blocks["tpo"].frozen = true;
  try {
    GroupsOf(*model, config.optimizer.blocks);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("optimizer.blocks.tpo"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("did you mean 'top'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace renzan
