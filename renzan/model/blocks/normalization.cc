#include "renzan/model/blocks/normalization.h"

#include <fmt/format.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/batch_norm.h"
#include "renzan/model/blocks/layer_norm.h"

namespace renzan {

const std::vector<std::string>& NormalizationNames() {
  static const std::vector<std::string> names = {"none", "batch", "layer"};
  return names;
}

std::unique_ptr<Normalization> MakeNormalization(const std::string& name, const BlockPlace& place,
                                                 const std::string& prefix, int64_t units) {
  if (name == "none") return nullptr;
  if (name == "batch")
    return std::make_unique<BatchNormalization>(BatchNorm{}, place, prefix, units);
  CHECK(name == "layer");
  if (units < 2) place.Reject("normalizes each layer by itself (layer), but one has a single unit");
  return std::make_unique<LayerNormalization>(LayerNorm{}, place, prefix, units, units);
}

}  // namespace renzan
