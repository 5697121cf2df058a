// Wide & Deep (Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016): a linear model
// beside an MLP over embeddings and dense features.

#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph WideDeepGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> logits = AddLinear(options, &graph);
  const std::string factors = options.tables.empty() ? "" : AddFactors(&graph);
  graph.push_back(MlpToLogit(options, "deep", AddDeepInput(options, factors, &graph)));
  logits.push_back("deep");
  graph.push_back({"logit", logits, Sum{}});
  return graph;
}

}  // namespace renzan
