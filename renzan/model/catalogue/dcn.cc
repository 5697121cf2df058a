// DCN (Wang et al., "Deep & Cross Network for Ad Click Predictions", 2017): a cross network, whose
// layers have a vector each, beside an MLP.

#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DcnGraph(const ModelOptions& options) {
  return CrossBesideMlp(options, {.layers = options.sizes.cross_layers, .kind = "vector"});
}

}  // namespace renzan
