#include "renzan/run/items_to_rank.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "renzan/run_spec/run_spec.h"

namespace renzan {

ItemRanking ItemsToRank(const TrainConfig& config, const OpenedSplits& splits, Communicator& comm) {
  const DatasetSchema& schema = splits.train.dataset->schema();
  const std::vector<int64_t>& ranks = config.training.ranking;
  const std::unique_ptr<Model> model = MakeModel(ModelOptionsOf(config, schema));
  return {*model,
          comm,
          ModelRows{splits.eval->dataset, splits.eval->rows},
          ModelRows{splits.train.dataset, splits.train.rows},
          EvaluatedOutputs(model->options().outputs, schema.label),
          RankingRequest{*std::max_element(ranks.begin(), ranks.end()), "training.ranking",
                         ErrorCode::kConfig}};
}

}  // namespace renzan
