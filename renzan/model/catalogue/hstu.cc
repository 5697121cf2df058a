// HSTU as a model of the next item (Zhai et al., "Actions Speak Louder than Words", ICML 2024):
// layers of the block `hstu` over a sequence of items, normalized between them. What they make of
// the newest item is compared with the next one.

#include "renzan/model/blocks/hstu.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/next_item.h"

namespace renzan {

Graph HstuGraph(const ModelOptions& options) {
  const NextItem next = NextItemOf(options);
  const int64_t dim = next.history.dim, heads = options.sizes.attention_heads;
  // A layer normalizes the columns of all heads: two at least.
  const Hstu layer = {.heads = heads,
                      .dim = std::max((dim + heads - 1) / heads, heads > 1 ? 1 : int64_t{2})};
  Graph graph;
  std::string x = EmbeddingsOf(next.history.name);
  const auto add = [&](std::string name, BlockOptions block) {
    graph.push_back({name, {x}, std::move(block)});
    x = std::move(name);
  };
  for (int i = 0; i < options.sizes.attention_layers; ++i) {
    // A single column would become zero.
    if (i > 0 && dim > 1) add(fmt::format("norm_{}", i), LayerNorm{.per_vector = true});
    add(fmt::format("hstu_{}", i), layer);
  }
  add("newest", Pool{"last"});
  AddNextItemLogit(options, next, x, &graph);
  return graph;
}

}  // namespace renzan
