#pragma once

// Activation functions other than ReLU, which products apply themselves (gemm.h), value by value
// and in place. Computed in double precision and rounded once, so that the bits hardly depend on
// the C library. Thread-safe.

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

}  // namespace renzan
