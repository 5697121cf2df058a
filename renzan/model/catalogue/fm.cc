// Factorization machine (Rendle, ICDM 2010): a linear model and the products of all pairs of
// embeddings. Dense features are in the linear part.

#include "renzan/model/blocks/fm.h"

#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph FmGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> logits = AddLinear(options, &graph);
  if (!options.tables.empty()) {
    graph.push_back({"fm", {AddProjection(options, AddFactors(&graph), 1, &graph)}, Fm{}});
    logits.push_back("fm");
  }
  graph.push_back({"logit", logits, Sum{}});
  return graph;
}

}  // namespace renzan
