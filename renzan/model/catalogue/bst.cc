// BST (Chen et al., "Behavior Sequence Transformer for E-commerce Recommendation in Alibaba",
// DLP-KDD 2019): an MLP over the embeddings, the dense features and what a transformer layer makes
// of each sequence, averaged over its positions. The feature that shares the sequence's table, the
// candidate, comes after the newest position; without one, there is only the sequence. As in
// FuxiCTR, but positions are added to the items, not put beside them, as in the transformer, and
// the layer has ReLU instead of leaky ReLU.

#include <fmt/format.h>

#include "renzan/model/blocks/append.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/positions.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {
namespace {

// Appends a transformer layer over sequence `s`. Returns the name of what it gives.
std::string AddTransformer(const ModelOptions& options, size_t s, Graph* graph) {
  const SequenceInput& sequence = options.sequences[s];
  const int64_t dim = sequence.dim, heads = options.sizes.attention_heads;
  std::string last = EmbeddingsOf(sequence.name);
  const auto add = [&](const char* name, std::vector<std::string> inputs, BlockOptions block) {
    last = fmt::format("{}_{}", name, s);
    graph->push_back({last, std::move(inputs), std::move(block)});
    return last;
  };
  // A single column would become zero.
  const auto normalize = [&](const char* name) {
    return dim > 1 ? add(name, {last}, LayerNorm{.per_vector = true}) : last;
  };
  if (!sequence.target.empty()) add("items", {last, EmbeddingsOf(sequence.target)}, Append{});
  const std::string items = add("positions", {last}, Positions{});
  add("heads", {last},
      SelfAttention{
          .heads = heads, .dim = (dim + heads - 1) / heads, .residual = false, .relu = false});
  add("attention", {last}, Mlp{.layers = {dim}, .linear_output = true, .per_vector = true});
  add("attended", {items, last}, Sum{});
  const std::string attended = normalize("attended_norm");
  add("forward", {last}, Mlp{.layers = {dim, dim}, .linear_output = true, .per_vector = true});
  add("transformed", {attended, last}, Sum{});
  normalize("transformed_norm");
  return add("interest", {last}, Pool{"mean"});
}

}  // namespace

Graph BstGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> inputs;
  if (!options.tables.empty()) inputs.push_back(kEmbeddingsInput);
  for (size_t s = 0; s < options.sequences.size(); ++s)
    inputs.push_back(AddTransformer(options, s, &graph));
  if (options.num_dense > 0) inputs.push_back(kDenseInput);
  graph.push_back({"deep_input", inputs, Concat{}});
  graph.push_back(MlpToLogit(options, "deep", "deep_input"));
  return graph;
}

}  // namespace renzan
