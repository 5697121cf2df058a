#pragma once

// A stack of fully connected layers: y = f(n(W x + b)), where n may normalize (batch_norm.h,
// layer_norm.h) and the last layer may be linear: then it has neither n nor f. With `residual`,
// every layer but the first and a linear last one adds its input to what f takes: y = f(n(W x + b)
// + x), as He et al., "Deep Residual Learning for Image Recognition", 2016. Takes any vectors,
// gives one. With `per_vector` it takes vectors of one dimension and applies the same layers to
// each (per_vector.h), so that of a sequence it gives a sequence.
//
// Parameters: "<name>.<i>.weight" [out, in] and "<name>.<i>.bias" [out], those of n as
// "<name>.<i>.norm.…", and those of f as "<name>.<i>.…" (activation_layer.h). Dropout's key is
// "<name>.<i>".

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Mlp {
  std::vector<int64_t> layers;  // their widths
  std::string activation = "relu";
  bool linear_output = false;          // no activation after the last layer; with one unit, a logit
  double dropout = 0;                  // after every layer but the last, in training
  std::string normalization = "none";  // one of NormalizationNames()
  bool residual = false;
  bool per_vector = false;

  static constexpr const char* kType = "mlp";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
