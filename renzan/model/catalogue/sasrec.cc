// SASRec (Kang & McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018): layers of causal
// self-attention and of a point-wise feed-forward network, each over normalized vectors and with a
// residual, over a sequence of items with learned positions. What they make of the newest item,
// normalized, is compared with the next one. Unlike the paper, heads are followed by a linear
// layer, as in the transformer; queries, keys and values all come from normalized vectors; dropout
// is in the feed-forward network only; and the loss is a softmax over several negatives instead of
// one.

#include <fmt/format.h>

#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/positions.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/next_item.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph SasrecGraph(const ModelOptions& options) {
  const NextItem next = NextItemOf(options);
  const int64_t dim = next.history.dim, heads = options.sizes.attention_heads;
  Graph graph;
  const auto add = [&](std::string name, std::vector<std::string> inputs, BlockOptions block) {
    graph.push_back({name, std::move(inputs), std::move(block)});
    return name;
  };
  // A single column would become zero.
  const auto normalize = [&](std::string name, const std::string& input) {
    return dim > 1 ? add(std::move(name), {input}, LayerNorm{.per_vector = true}) : input;
  };
  std::string x = add("positions", {EmbeddingsOf(next.history.name)}, Positions{});
  for (int layer = 0; layer < options.sizes.attention_layers; ++layer) {
    const auto name = [&](const char* part) { return fmt::format("{}_{}", part, layer); };
    std::string part = normalize(name("attention_norm"), x);
    part = add(name("heads"), {part},
               SelfAttention{.heads = heads,
                             .dim = (dim + heads - 1) / heads,
                             .residual = false,
                             .causal = true,
                             .relu = false});
    part = add(name("attention"), {part},
               Mlp{.layers = {dim}, .linear_output = true, .per_vector = true});
    x = add(name("attended"), {x, part}, Sum{});
    part = normalize(name("forward_norm"), x);
    part = add(name("forward"), {part},
               Mlp{.layers = {dim, dim},
                   .linear_output = true,
                   .dropout = options.sizes.dropout,
                   .per_vector = true});
    x = add(name("transformed"), {x, part}, Sum{});
  }
  x = normalize("normalized", x);
  AddNextItemLogit(options, next, add("newest", {x}, Pool{"last"}), &graph);
  return graph;
}

}  // namespace renzan
