// MMoE (Ma et al., "Modeling Task Relationships in Multi-task Learning with Multi-gate
// Mixture-of-Experts", KDD 2018): experts over the embeddings and the dense features, which each
// task mixes by a gate of its own, and a tower for each task.

#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph MmoeGraph(const ModelOptions& options) {
  const ModelSizes& sizes = options.sizes;
  Graph graph;
  const std::string x = AddDeepInput(options, EmbeddingsIfAny(options), &graph);
  const auto experts = AddExperts(options, "expert", sizes.experts, x, sizes.expert_mlp, &graph);
  for (const ModelOutput& output : options.outputs) {
    const std::string mixed = AddGate("gate_" + output.name, x, experts, &graph);
    graph.push_back(MlpToLogit(options, BlockOfOutput(output.name), mixed));
  }
  return graph;
}

}  // namespace renzan
