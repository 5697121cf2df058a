#pragma once

// A function of each value of a matrix: those of nn/activation.h, and two whose form training
// determines, column by column:
//
// - prelu: z where z > 0, slope · z elsewhere. He et al., "Delving Deep into Rectifiers", 2015. The
//   slopes begin at 0.25, as in that paper and PyTorch.
// - dice: p z + (1 − p) slope · z with p = σ((z − mean) / √(variance + 1e-9)), where mean and
//   variance are those of batch normalization (batch_norm.h) with a momentum of 0.01. The slopes
//   begin at 0. Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", 2018;
//   constants as in FuxiCTR.
//
// Parameters: "<prefix>.slope", one for each column; of dice "<prefix>.running_mean" and
// "<prefix>.running_var", too.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

class ActivationLayer {
 public:
  virtual ~ActivationLayer() = default;

  // y = f(z), of the same shape and precision.
  virtual void Forward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* y) const = 0;
  // After Forward: turns the gradient of y into that of z.
  virtual void Backward(const BlockPass& pass, const BlockedMatrix& z, BlockedMatrix* d,
                        WeightGradients* gradients) const = 0;
};

const std::vector<std::string>& ActivationLayerNames();

std::unique_ptr<ActivationLayer> MakeActivationLayer(const std::string& name,
                                                     const BlockPlace& place,
                                                     const std::string& prefix, int64_t columns);

}  // namespace renzan
