// DeepFM (Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction",
// 2017): a factorization machine beside an MLP over the same embeddings and the dense features.

#include "renzan/model/blocks/fm.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DeepFmGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> logits = AddLinear(options, &graph);
  std::string factors;
  if (!options.tables.empty()) {
    factors = AddProjection(options, AddFactors(&graph), 1, &graph);
    graph.push_back({"fm", {factors}, Fm{}});
    logits.push_back("fm");
  }
  graph.push_back(MlpToLogit(options, "deep", AddDeepInput(options, factors, &graph)));
  logits.push_back("deep");
  graph.push_back({"logit", logits, Sum{}});
  return graph;
}

}  // namespace renzan
