// What sample weights and the settings of the loss do to a step.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/comm/testing.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

// One step of SGD: 2 is a power of two, so nothing rounds differently.
TEST(Step, AWeightIsAFactorOfTheGradient) {
  const auto train = [](double rate, std::optional<float> weight) {
    TrainConfig config = SmallConfig();
    config.optimizer.dense.learning_rate = config.optimizer.sparse.learning_rate = rate;
    const DatasetSchema schema = weight ? WeightedSchema() : TestSchema();
    std::map<std::string, std::string> digests;
    RunRanksAsThreads(1, [&](Communicator& comm) {
      ThreadPool pool(2);
      TestModel model(config, schema, comm, pool);
      std::vector<OutputMetrics> metrics(2);
      Batch slice = MakeSlice(model, 0, schema);
      if (weight) slice.weight.assign(slice.weight.size(), *weight);
      model.Run(slice, 0, metrics);
      digests = DigestsOf(model);
    });
    return digests;
  };
  EXPECT_EQ(train(0.25, 2), train(0.5, {}));
  EXPECT_EQ(train(0.5, 1), train(0.5, {}));
  EXPECT_NE(train(0.25, 2), train(0.25, {}));
  EXPECT_EQ(train(0.5, 0), train(0, 1));
}

// Where only one sample counts, only its rows change.
TEST(Step, AWeightBelongsToItsSample) {
  RunRanksAsThreads(1, [](Communicator& comm) {
    for (const size_t sample : {size_t{0}, size_t{13}, size_t{63}}) {
      ThreadPool pool(2);
      TestModel model(SmallConfig(), WeightedSchema(), comm, pool);
      std::vector<OutputMetrics> metrics(2);
      Batch slice = MakeSlice(model, 0, WeightedSchema());
      slice.weight.assign(slice.weight.size(), 0);
      slice.weight[sample] = 1;
      RowStore& table = *model.embeddings().shards()[1].store;
      const auto weights = [&] {
        std::vector<float> all(static_cast<size_t>(table.num_rows()) * 8);
        table.CopyWeights(0, table.num_rows(), reinterpret_cast<std::byte*>(all.data()));
        return all;
      };
      std::vector<float> before = weights();
      model.Run(slice, 0, metrics);
      const std::vector<float> after = weights();
      const auto used = static_cast<size_t>(slice.categorical[1].values[sample]);
      EXPECT_NE(before[used * 8], after[used * 8]);
      std::copy_n(after.data() + used * 8, 8, before.data() + used * 8);
      EXPECT_TRUE(before == after) << "another row than " << used;
    }
  });
}

// Metrics stay comparable between settings: they are of the plain loss, every sample once.
TEST(Step, MetricsIgnoreTheLossesSettings) {
  const auto metrics_of = [](const TrainConfig& config, const DatasetSchema& schema) {
    std::vector<OutputMetrics> metrics(1);
    RunRanksAsThreads(1, [&](Communicator& comm) {
      ThreadPool pool(1);
      TestModel model(config, schema, comm, pool);
      model.Run(MakeSlice(model, 0, schema), 0, metrics);
    });
    return metrics[0];
  };
  TrainConfig config = SmallConfig();
  const OutputMetrics plain = metrics_of(config, TestSchema());
  config.training.loss = {.pos_weight = 7.3, .label_smoothing = 0.1};
  EXPECT_EQ(metrics_of(config, WeightedSchema()), plain);
}

}  // namespace
}  // namespace renzan
