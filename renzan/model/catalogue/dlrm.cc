// DLRM (Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
// Systems", 2019): bottom MLP, dot interaction, top MLP. Rows of other dimensions than
// embedding_dim are projected.

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/dot.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DlrmGraph(const ModelOptions& options) {
  Graph graph = {BottomMlp(options), {"vectors", {"bottom", kEmbeddingsInput}, Concat{}}};
  const std::string vectors = AddProjection(options, "vectors", 0, &graph);
  graph.push_back({"interactions", {vectors}, Dot{}});
  graph.push_back(MlpToLogit(options, "top", "interactions"));
  return graph;
}

}  // namespace renzan
