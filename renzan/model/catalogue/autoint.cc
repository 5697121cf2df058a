// AutoInt+ (Song et al., "AutoInt: Automatic Feature Interaction Learning via Self-Attentive Neural
// Networks", CIKM 2019), as FuxiCTR builds it with use_wide and use_scale: layers of self-attention
// over the embeddings and a linear layer over what they give, in sum with an MLP over embeddings
// and dense features and with a linear model. Without hidden layers in top_mlp there is no MLP:
// AutoInt. Unlike there, dense features have no embeddings: the attention does not see them.

#include <fmt/format.h>

#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {
namespace {

// Returns the name of the logit.
std::string AddAttention(const ModelOptions& options, const std::string& vectors, Graph* graph) {
  std::string last = vectors;
  for (int layer = 0; layer < options.sizes.attention_layers; ++layer) {
    const std::string name = fmt::format("attention_{}", layer);
    graph->push_back({name,
                      {last},
                      // Later layers have the heads' dimension anyway.
                      SelfAttention{.heads = options.sizes.attention_heads,
                                    .dim = options.sizes.attention_dim}});
    last = name;
  }
  graph->push_back({"attention_logit", {last}, Mlp{.layers = {1}, .linear_output = true}});
  return "attention_logit";
}

}  // namespace

Graph AutoIntGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> logits = AddLinear(options, &graph);
  std::string vectors;
  if (!options.tables.empty()) {
    vectors = AddProjection(options, AddFactors(&graph), 1, &graph);
    logits.push_back(AddAttention(options, vectors, &graph));
  }
  if (!options.sizes.top_mlp.empty()) {
    graph.push_back(MlpToLogit(options, "deep", AddDeepInput(options, vectors, &graph)));
    logits.push_back("deep");
  }
  graph.push_back({"logit", logits, Sum{}});
  return graph;
}

}  // namespace renzan
