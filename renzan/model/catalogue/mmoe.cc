// MMoE (Ma et al., "Modeling Task Relationships in Multi-task Learning with Multi-gate
// Mixture-of-Experts", KDD 2018): experts over the embeddings and the dense features, which each
// task mixes by a gate of its own, and a tower for each task.

#include <fmt/format.h>

#include "renzan/model/blocks/gate.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph MmoeGraph(const ModelOptions& options) {
  Graph graph;
  const std::string x = AddDeepInput(options, EmbeddingsIfAny(options), &graph);
  std::vector<std::string> experts;
  for (int i = 0; i < options.sizes.experts; ++i) {
    experts.push_back(fmt::format("expert_{}", i));
    graph.push_back({experts.back(), {x}, CommonMlp(options, options.sizes.expert_mlp)});
  }
  for (const ModelOutput& output : options.outputs) {
    const std::string gate = "gate_" + output.name;
    std::vector<std::string> inputs = {x};
    inputs.insert(inputs.end(), experts.begin(), experts.end());
    graph.push_back({gate, inputs, Gate{}});
    graph.push_back(MlpToLogit(options, BlockOfOutput(output.name), gate));
  }
  return graph;
}

}  // namespace renzan
