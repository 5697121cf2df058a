#pragma once

// Activation functions other than ReLU, which products apply themselves (gemm.h), value by value
// and in place. Computed in double precision, in vectors, and rounded once: within one unit of the
// last place of float32, with the same bits on every instruction set and without the C library. NaN
// stays NaN, and of −∞ silu and gelu, which are products with 0, are NaN. Thread-safe.

#include <string>
#include <vector>

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

enum class Activation {
  kRelu,     // max(z, 0)
  kSilu,     // z σ(z); Elfwing et al., 2018, also called swish
  kGelu,     // z Φ(z); Hendrycks and Gimpel, 2016
  kTanh,     // tanh z
  kSigmoid,  // σ(z)
};

const std::vector<std::string>& ActivationNames();
// CHECKs that it is one of these names.
Activation ActivationNamed(const std::string& name);

// y = f(z), of the same shape and precision.
void Activate(Activation activation, const BlockedMatrix& z, BlockedMatrix* y);

// d *= f'(z)
void ActivateBackward(Activation activation, const BlockedMatrix& z, BlockedMatrix* d);

// Functions with slopes [columns], one for each column. Gradients of slopes are those of each
// sample, float32 like `normalized` whatever the precision of z and d.

// y = z where z > 0, slope z elsewhere.
void Prelu(const BlockedMatrix& z, const float* slopes, BlockedMatrix* y);
// From d = dy to d = dz, and the gradients of the slopes.
void PreluBackward(const BlockedMatrix& z, const float* slopes, BlockedMatrix* d,
                   BlockedMatrix* d_slopes);

// y = z (p + slope (1 − p)), p = σ(normalized).
void Dice(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
          BlockedMatrix* y);
// From d = dy to d = dz for constant p, and the gradients of `normalized` and the slopes.
// d_normalized may not be `normalized`.
void DiceBackward(const BlockedMatrix& z, const BlockedMatrix& normalized, const float* slopes,
                  BlockedMatrix* d, BlockedMatrix* d_normalized, BlockedMatrix* d_slopes);

}  // namespace renzan
