// DLRM-DCNv2, MLPerf's recommendation model: bottom MLP, low-rank cross network over the
// concatenated vectors, top MLP ("over-arch").

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DlrmDcnV2Graph(const ModelOptions& options) {
  return {BottomMlp(options),
          {"vectors", {"bottom", kEmbeddingsInput}, Concat{}},
          {"cross", {"vectors"}, Cross{options.sizes.cross_layers, options.sizes.cross_rank}},
          MlpToLogit(options, "top", "cross")};
}

}  // namespace renzan
