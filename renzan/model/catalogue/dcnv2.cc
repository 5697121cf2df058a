// DCN-V2 in parallel (Wang et al., "DCN V2: Improved Deep & Cross Network", WWW 2021): a cross
// network and an MLP over embeddings and dense features, whose outputs a linear layer combines.

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DcnV2Graph(const ModelOptions& options) {
  Graph graph;
  const std::string x = AddDeepInput(options, kEmbeddingsInput, &graph);
  graph.push_back({"cross", {x}, Cross{options.sizes.cross_layers, options.sizes.cross_rank}});
  std::vector<std::string> outputs = {"cross"};
  if (!options.sizes.top_mlp.empty()) {
    graph.push_back({"deep", {x}, CommonMlp(options, options.sizes.top_mlp)});
    outputs.push_back("deep");
  }
  graph.push_back({"outputs", outputs, Concat{}});
  graph.push_back({"logit", {"outputs"}, Mlp{.layers = {1}, .linear_output = true}});
  return graph;
}

}  // namespace renzan
