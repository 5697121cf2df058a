#include "renzan/model/blocks/types.h"

#include <map>

#include "renzan/base/error.h"
#include "renzan/model/blocks/activation.h"
#include "renzan/model/blocks/append.h"
#include "renzan/model/blocks/batch_norm.h"
#include "renzan/model/blocks/bilinear.h"
#include "renzan/model/blocks/cin.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/dot.h"
#include "renzan/model/blocks/first_order.h"
#include "renzan/model/blocks/fm.h"
#include "renzan/model/blocks/gate.h"
#include "renzan/model/blocks/hstu.h"
#include "renzan/model/blocks/in_batch_softmax.h"
#include "renzan/model/blocks/l2_normalize.h"
#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/match.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/multiply.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/positions.h"
#include "renzan/model/blocks/product_of_probabilities.h"
#include "renzan/model/blocks/project.h"
#include "renzan/model/blocks/sampled_softmax.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/blocks/target_attention.h"
#include "renzan/model/blocks/zeros.h"

namespace renzan {
namespace {

const std::vector<BlockOptions>& Types() {
  static const std::vector<BlockOptions> types = {
      ActivationFunction{},
      Append{},
      BatchNorm{},
      Bilinear{},
      Cin{},
      Concat{},
      Cross{},
      Dot{},
      Factors{},
      FirstOrder{},
      Fm{},
      Gate{},
      Hstu{},
      InBatchSoftmax{},
      L2Normalize{},
      LayerNorm{},
      Match{},
      Mlp{},
      Pool{},
      Positions{},
      Product{},
      ProductOfProbabilities{},
      Project{},
      SampledSoftmax{},
      SelfAttention{},
      Sum{},
      TargetAttention{},
      Zeros{},
  };
  return types;
}

}  // namespace

std::vector<std::string> BlockTypeNames() {
  std::vector<std::string> names;
  for (const BlockOptions& type : Types()) names.push_back(type.type());
  return names;
}

std::string InsteadOfBlockType(const std::string& name) {
  static const std::map<std::string, std::string> instead = {
      {"add", "sum"},
      {"instance_mask",
       "layer_norm, mlp and multiply, as renzan train --print-config prints them for model.type: "
       "masknet"},
      {"linear", "mlp with linear_output: true"},
  };
  const auto found = instead.find(name);
  return found == instead.end() ? "" : found->second;
}

BlockOptions BlockOfType(const std::string& name) {
  for (const BlockOptions& type : Types())
    if (name == type.type()) return type;
  Fail(ErrorCode::kConfig, "unknown block '{}'", name);
}

}  // namespace renzan
