// MaskNet in parallel (Wang et al., "MaskNet: Introducing Feature-Wise Multiplication to CTR
// Ranking Models by Instance-Guided Mask", 2021): each block multiplies the normalized embeddings
// and dense features by a mask that an MLP computes from them, and an MLP takes the outputs of all
// blocks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/model/blocks/activation.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/multiply.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph MaskNetGraph(const ModelOptions& options) {
  const ModelSizes& sizes = options.sizes;
  Graph graph;
  const std::string x = AddDeepInput(options, kEmbeddingsInput, &graph);
  const int64_t width = options.num_dense + PooledColumns(options);
  const auto hidden =
      std::max<int64_t>(1, std::llround(sizes.mask_ratio * static_cast<double>(width)));
  // One column by itself would always be normalized to 0.
  const std::string normalized = width > 1 ? "normalized" : x;
  if (width > 1) graph.push_back({normalized, {x}, LayerNorm{}});
  std::vector<std::string> outputs;
  for (int i = 0; i < sizes.mask_blocks; ++i) {
    const std::string mask = fmt::format("mask_{}", i), masked = fmt::format("masked_{}", i);
    const std::string sums = fmt::format("sums_{}", i), scaled = fmt::format("scaled_{}", i);
    graph.push_back({mask, {x}, Mlp{.layers = {hidden, width}, .linear_output = true}});
    graph.push_back({masked, {normalized, mask}, Product{}});
    graph.push_back({sums, {masked}, Mlp{.layers = {sizes.mask_width}, .linear_output = true}});
    graph.push_back({scaled, {sums}, LayerNorm{}});
    outputs.push_back(fmt::format("output_{}", i));
    graph.push_back({outputs.back(), {scaled}, ActivationFunction{}});
  }
  graph.push_back({"outputs", outputs, Concat{}});
  graph.push_back(MlpToLogit(options, "top", "outputs"));
  return graph;
}

}  // namespace renzan
