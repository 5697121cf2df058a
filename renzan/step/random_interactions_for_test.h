#pragma once

// Blocks of random graphs that compare or cross values, and the less usual MLPs.

#include <string>
#include <vector>

#include "renzan/model/blocks/activation_layer.h"
#include "renzan/model/blocks/bilinear.h"
#include "renzan/model/blocks/cin.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/dot.h"
#include "renzan/model/blocks/first_order.h"
#include "renzan/model/blocks/fm.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/normalization.h"
#include "renzan/model/blocks/project.h"
#include "renzan/model/blocks/zeros.h"
#include "renzan/model/graph.h"
#include "renzan/step/draws_for_test.h"

namespace renzan {

// Vectors of one dimension: those of all tables, and perhaps first one of the dense features, or
// one of zeros. Returns the name of the value.
inline std::string DrawVectors(Draws& draw, const std::string& name,
                               std::vector<GraphBlock>* blocks) {
  const int64_t dim = draw.Size(20);
  blocks->push_back({name + "_projected", {kEmbeddingsInput}, Project{dim}});
  if (draw.OneIn(3)) return name + "_projected";
  blocks->push_back(draw.OneIn(2)
                        ? GraphBlock{name + "_first", {}, Zeros{dim}}
                        : GraphBlock{name + "_first", {kDenseInput}, Mlp{.layers = {dim}}});
  blocks->push_back({name + "_vectors", {name + "_first", name + "_projected"}, Concat{}});
  return name + "_vectors";
}

// A block of this name and those before it, of which some take one of these values.
inline void DrawInteraction(Draws& draw, const std::string& name,
                            const std::vector<std::string>& values,
                            std::vector<GraphBlock>* blocks) {
  const auto add = [&](std::vector<std::string> inputs, const BlockOptions& block) {
    blocks->push_back({name, std::move(inputs), block});
  };
  switch (draw.Below(7)) {
    case 0:
      add({DrawVectors(draw, name, blocks)}, Dot{});
      break;
    case 1:
      add({DrawVectors(draw, name, blocks)}, Fm{});
      break;
    case 2: {
      std::vector<int64_t> maps;
      for (int layer = 1 + draw.Below(2); layer > 0; --layer) maps.push_back(draw.Size(5));
      add({DrawVectors(draw, name, blocks)}, Cin{.layers = maps});
      break;
    }
    case 3:
      add({draw.OneIn(2) ? kEmbeddingsInput : DrawVectors(draw, name, blocks)}, FirstOrder{});
      break;
    case 4: {
      const int64_t heads = draw.Size(4);
      for (const char* side : {"_x", "_y"})
        blocks->push_back({name + side, {draw.Of(values)}, Mlp{.layers = {heads * draw.Size(10)}}});
      add({name + "_x", name + "_y"}, Bilinear{.heads = heads});
      break;
    }
    case 5:
      add({draw.Of(values)},
          Cross{.layers = draw.Below(3), .rank = draw.Size(5), .experts = draw.Size(3)});
      break;
    case 6: {
      // Normalizing a single column leaves nothing.
      const int64_t width = 1 + draw.Size(20);
      add({draw.Of(values)},
          Mlp{.layers = std::vector<int64_t>(static_cast<size_t>(2 + draw.Below(2)), width),
              .activation = draw.Of(ActivationLayerNames()),
              .linear_output = draw.OneIn(2),
              .dropout = draw.OneIn(3) ? 0.3 : 0,
              .normalization = draw.Of(NormalizationNames()),
              .residual = !draw.OneIn(3)});
      break;
    }
  }
}

}  // namespace renzan
