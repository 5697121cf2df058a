// Logistic regression: a weight for each value and each dense feature, and a bias.

#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph LrGraph(const ModelOptions& options) {
  Graph graph;
  const std::vector<std::string> logits = AddLinear(options, &graph);
  graph.push_back({"logit", logits, Sum{}});
  return graph;
}

}  // namespace renzan
