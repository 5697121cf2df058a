// PLE (Tang et al., "Progressive Layered Extraction (PLE): A Novel Multi-Task Learning Model for
// Personalized Recommendations", RecSys 2020): levels of experts, some of each task and some shared,
// which gates mix for each task, and for the shared ones of the next level; then a tower for each
// task. With one level it is the paper's CGC.

#include <fmt/format.h>

#include "renzan/model/blocks/gate.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {
namespace {

// Appends experts over `input`. Returns their names.
std::vector<std::string> AddExperts(const ModelOptions& options, int count,
                                    const std::string& prefix, const std::string& input,
                                    Graph* graph) {
  std::vector<std::string> experts;
  for (int i = 0; i < count; ++i) {
    experts.push_back(fmt::format("{}_expert_{}", prefix, i));
    graph->push_back({experts.back(), {input}, CommonMlp(options, options.sizes.expert_mlp)});
  }
  return experts;
}

std::vector<std::string> Joined(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

Graph PleGraph(const ModelOptions& options) {
  const ModelSizes& sizes = options.sizes;
  Graph graph;
  std::string shared = AddDeepInput(options, EmbeddingsIfAny(options), &graph);
  std::vector<std::string> inputs(options.outputs.size(), shared);  // by task
  for (int level = 0; level < sizes.expert_levels; ++level) {
    const auto of_shared =
        AddExperts(options, sizes.experts, fmt::format("shared_{}", level), shared, &graph);
    std::vector<std::string> all = of_shared;
    for (size_t t = 0; t < inputs.size(); ++t) {
      const std::string prefix = fmt::format("task_{}_{}", level, options.outputs[t].name);
      const auto own = AddExperts(options, sizes.task_experts, prefix, inputs[t], &graph);
      all = Joined(all, own);
      graph.push_back({prefix + "_gate", Joined({inputs[t]}, Joined(own, of_shared)), Gate{}});
      inputs[t] = prefix + "_gate";
    }
    if (level + 1 == sizes.expert_levels) break;
    const std::string gate = fmt::format("shared_{}_gate", level);
    graph.push_back({gate, Joined({shared}, all), Gate{}});
    shared = gate;
  }
  for (size_t t = 0; t < inputs.size(); ++t)
    graph.push_back(MlpToLogit(options, BlockOfOutput(options.outputs[t].name), inputs[t]));
  return graph;
}

}  // namespace renzan
