// Two towers (Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item
// Recommendations", RecSys 2019): an MLP over the query's features, one over the item's, and the
// product of the directions that they give, against those of other samples' items.

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/in_batch_softmax.h"
#include "renzan/model/blocks/l2_normalize.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph TwoTowerGraph(const ModelOptions& options) {
  const std::vector<std::string>& names = options.sizes.item_features;
  std::vector<std::string> unknown = names, query, item;
  Graph graph;
  const auto add = [&](const std::string& feature, const std::string& input) {
    const bool is_item = std::erase(unknown, UnescapeName(feature)) > 0;
    (is_item ? item : query).push_back(input);
  };
  for (const TableInput& table : options.tables) add(table.name, EmbeddingsOf(table.name));
  for (size_t s = 0; s < options.sequences.size(); ++s) {
    const std::string pooled = fmt::format("history_{}", s), &name = options.sequences[s].name;
    graph.push_back({pooled, {EmbeddingsOf(name)}, Pool{"mean"}});
    add(name, pooled);
  }
  if (options.num_dense > 0) query.push_back(kDenseInput);
  if (!unknown.empty())
    Fail(ErrorCode::kConfig,
         "model.item_features: the dataset has no categorical feature '{}'; dense ones are the "
         "query's",
         Escape(unknown[0]));
  if (item.empty() || query.empty())
    Fail(ErrorCode::kConfig,
         "model.item_features: leave nothing to the {}'s tower: name those features that describe "
         "an item, first the one that says which item it is",
         item.empty() ? "item" : "query");
  const auto add_tower = [&](const std::string& name, const std::vector<std::string>& inputs) {
    graph.push_back({name + "_input", inputs, Concat{}});
    graph.push_back({name + "_tower",
                     {name + "_input"},
                     CommonMlp(options, options.sizes.tower_mlp, /*linear_output=*/true)});
    graph.push_back({name, {name + "_tower"}, L2Normalize{}});
  };
  add_tower("query", query);
  add_tower("item", item);
  graph.push_back({"logit",
                   {"query", "item"},
                   InBatchSoftmax{.temperature = options.sizes.temperature,
                                  .item = names[0],
                                  .popularity = options.sizes.popularity}});
  return graph;
}

}  // namespace renzan
