// DCN-V2 in parallel (Wang et al., "DCN V2: Improved Deep & Cross Network", WWW 2021): a cross
// network and an MLP over embeddings and dense features, whose outputs a linear layer combines.

#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DcnV2Graph(const ModelOptions& options) {
  return CrossBesideMlp(options, {.layers = options.sizes.cross_layers,
                                  .rank = options.sizes.cross_rank,
                                  .experts = options.sizes.cross_experts});
}

}  // namespace renzan
