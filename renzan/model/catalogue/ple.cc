// PLE (Tang et al., "Progressive Layered Extraction (PLE): A Novel Multi-Task Learning Model for
// Personalized Recommendations", RecSys 2020): levels of experts, some of each task and some
// shared, which gates mix for each task, and for the shared ones of the next level; then a tower
// for each task. With one level it is the paper's CGC.

#include <fmt/format.h>

#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {
namespace {

std::vector<std::string> Joined(std::vector<std::string> all,
                                const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

Graph PleGraph(const ModelOptions& options) {
  const ModelSizes& sizes = options.sizes;
  Graph graph;
  const auto add_experts = [&](const std::string& owner, int count, const std::string& input) {
    return AddExperts(options, owner + "_expert", count, input, sizes.expert_mlp, &graph);
  };
  std::string shared = AddDeepInput(options, EmbeddingsIfAny(options), &graph);
  std::vector<std::string> inputs(options.outputs.size(), shared);  // by task
  for (int level = 0; level < sizes.expert_levels; ++level) {
    const std::string shared_name = fmt::format("shared_{}", level);
    const auto of_all = add_experts(shared_name, sizes.experts, shared);
    std::vector<std::string> every = of_all;
    for (size_t t = 0; t < inputs.size(); ++t) {
      const std::string name = fmt::format("task_{}_{}", level, options.outputs[t].name);
      const auto own = add_experts(name, sizes.task_experts, inputs[t]);
      every = Joined(every, own);
      inputs[t] = AddGate(name + "_gate", inputs[t], Joined(own, of_all), &graph);
    }
    if (level + 1 < sizes.expert_levels)
      shared = AddGate(shared_name + "_gate", shared, every, &graph);
  }
  for (size_t t = 0; t < inputs.size(); ++t)
    graph.push_back(MlpToLogit(options, BlockOfOutput(options.outputs[t].name), inputs[t]));
  return graph;
}

}  // namespace renzan
