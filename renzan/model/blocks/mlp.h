#pragma once

// A stack of fully connected layers: y = f(W x + b), where the last one may be linear. Takes any
// vectors, gives one.
//
// Parameters: "<name>.<i>.weight" [out, in] and "<name>.<i>.bias" [out]. Dropout's key is
// "<name>.<i>".

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

struct Mlp {
  std::vector<int64_t> layers;  // their widths
  std::string activation = "relu";
  bool linear_output = false;  // no activation after the last layer; with one unit, a logit
  double dropout = 0;          // after every layer but the last, in training

  static constexpr const char* kType = "mlp";
  void Describe(ConfigFields& fields);
  std::unique_ptr<Block> Make(const BlockPlace& place) const;
};

}  // namespace renzan
