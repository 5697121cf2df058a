#include "renzan/model/catalogue/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/first_order.h"
#include "renzan/model/blocks/gate.h"
#include "renzan/model/blocks/project.h"
#include "renzan/model/blocks/zeros.h"

namespace renzan {
namespace {

std::vector<int64_t> WithLast(std::vector<int64_t> layers, int64_t last) {
  layers.push_back(last);
  return layers;
}

}  // namespace

Mlp CommonMlp(const ModelOptions& options, std::vector<int64_t> layers, bool linear_output) {
  return {.layers = std::move(layers),
          .activation = options.sizes.activation,
          .linear_output = linear_output,
          .dropout = options.sizes.dropout,
          .normalization = options.sizes.normalization};
}

GraphBlock BottomMlp(const ModelOptions& options) {
  if (options.num_dense == 0) return {"bottom", {}, Zeros{options.embedding_dim}};
  return {"bottom",
          {kDenseInput},
          CommonMlp(options, WithLast(options.sizes.bottom_mlp, options.embedding_dim))};
}

GraphBlock MlpToLogit(const ModelOptions& options, const std::string& name,
                      const std::string& input) {
  return {name, {input}, CommonMlp(options, WithLast(options.sizes.top_mlp, 1), true)};
}

std::vector<std::string> AddLinear(const ModelOptions& options, Graph* graph) {
  std::vector<std::string> logits;
  if (!options.tables.empty()) {
    graph->push_back({"first_order", {kEmbeddingsInput}, FirstOrder{}});
    logits.push_back("first_order");
  }
  if (options.num_dense > 0) {
    graph->push_back({"linear", {kDenseInput}, Mlp{.layers = {1}, .linear_output = true}});
    logits.push_back("linear");
  }
  return logits;
}

std::string AddFactors(Graph* graph) {
  graph->push_back({"factors", {kEmbeddingsInput}, Factors{}});
  return "factors";
}

std::string AddProjection(const ModelOptions& options, const std::string& input, int64_t extra,
                          Graph* graph) {
  const int64_t dim = options.embedding_dim;
  if (std::all_of(options.tables.begin(), options.tables.end(),
                  [&](const TableInput& table) { return table.dim == dim + extra; }))
    return input;
  graph->push_back({"projection", {input}, Project{dim}});
  return "projection";
}

std::string EmbeddingsIfAny(const ModelOptions& options) {
  return options.tables.empty() ? "" : kEmbeddingsInput;
}

std::string AddDeepInput(const ModelOptions& options, const std::string& input, Graph* graph) {
  std::vector<std::string> inputs;
  if (!input.empty()) inputs.push_back(input);
  if (options.num_dense > 0) inputs.push_back(kDenseInput);
  graph->push_back({"deep_input", std::move(inputs), Concat{}});
  return "deep_input";
}

std::vector<std::string> AddExperts(const ModelOptions& options, const std::string& prefix,
                                    int count, const std::string& input,
                                    const std::vector<int64_t>& layers, Graph* graph) {
  std::vector<std::string> experts;
  for (int e = 0; e < count; ++e) {
    experts.push_back(fmt::format("{}_{}", prefix, e));
    graph->push_back({experts.back(), {input}, CommonMlp(options, layers)});
  }
  return experts;
}

std::string AddGate(const std::string& name, const std::string& input,
                    const std::vector<std::string>& experts, Graph* graph) {
  if (experts.size() == 1) return experts.front();
  std::vector<std::string> inputs = {input};
  inputs.insert(inputs.end(), experts.begin(), experts.end());
  graph->push_back({name, std::move(inputs), Gate{}});
  return name;
}

Graph CrossBesideMlp(const ModelOptions& options, const Cross& cross) {
  Graph graph;
  const std::string x = AddDeepInput(options, kEmbeddingsInput, &graph);
  graph.push_back({"cross", {x}, cross});
  std::vector<std::string> outputs = {"cross"};
  if (!options.sizes.top_mlp.empty()) {
    graph.push_back({"deep", {x}, CommonMlp(options, options.sizes.top_mlp)});
    outputs.push_back("deep");
  }
  graph.push_back({"outputs", outputs, Concat{}});
  graph.push_back({"logit", {"outputs"}, Mlp{.layers = {1}, .linear_output = true}});
  return graph;
}

}  // namespace renzan
