#pragma once

// The activation functions of activation.h in float32 vectors, many times faster: σ and z σ within
// a few units of the last place, with the same bits on all targets; the others as they are there.
// For blocks whose models were never trained with those. Thread-safe.

#include "renzan/nn/activation.h"

namespace renzan {

// y = f(z), of the same shape and precision.
void ActivateInFloat(Activation activation, const BlockedMatrix& z, BlockedMatrix* y);

// d *= f'(z)
void ActivateInFloatBackward(Activation activation, const BlockedMatrix& z, BlockedMatrix* d);

}  // namespace renzan
