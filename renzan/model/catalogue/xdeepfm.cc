// xDeepFM (Lian et al., "xDeepFM: Combining Explicit and Implicit Feature Interactions for
// Recommender Systems", KDD 2018): a linear model, a compressed interaction network and an MLP over
// the same embeddings. Dense features are in the linear part and the MLP.

#include "renzan/model/blocks/cin.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph XDeepFmGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> logits = AddLinear(options, &graph);
  std::string factors;
  if (!options.tables.empty()) factors = AddProjection(options, AddFactors(&graph), 1, &graph);
  if (!options.tables.empty() && !options.sizes.cin_layers.empty()) {
    graph.push_back({"cin", {factors}, Cin{options.sizes.cin_layers}});
    graph.push_back({"cin_logit", {"cin"}, Mlp{.layers = {1}, .linear_output = true}});
    logits.push_back("cin_logit");
  }
  graph.push_back(MlpToLogit(options, "deep", AddDeepInput(options, factors, &graph)));
  logits.push_back("deep");
  graph.push_back({"logit", logits, Sum{}});
  return graph;
}

}  // namespace renzan
