#pragma once

// Single-threaded matrix products. What surrounds a product in a layer is done while the result is
// in registers. Thread-safe.
//
// Every element of a float32 product is one chain of fused multiply-adds over k in ascending order.
// So its bits depend only on the values: not on the shapes, the blocking, or the width of the
// vectors. On targets without FMA (SSE4) each product is rounded before it is added.
//
// Products of bfloat16 accumulate in float32 in the same way, but k runs in the order 1, 0, 3, 2,
// 5, 4, ... (an odd k is extended by a zero), and denormal numbers count as zero. That is what
// AVX-512's vdpbf16ps does (Intel's "Architecture Instruction Set Extensions Programming
// Reference"), so all targets with FMA agree on these bits, too. The class "amx" (isa.h) has AMX's
// order instead: of every 32 k, the even ones form one chain from zero and the odd ones another,
// and the sum of both is added to the element.

#include <cstdint>

#include "renzan/nn/right_operand.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// At most one of `bias` and `accumulate`, and at most one of `relu` and `mask`.
struct GemmOptions {
  const float* bias = nullptr;  // [n]: the sum of column j starts with bias[j]
  bool accumulate = false;      // the sums start with C
  bool relu = false;            // max(sum, 0); NaN stays NaN
  // [m, n], in C's precision: the result is mask > 0 ? sum · mask_scale : 0. This is the gradient
  // of ReLU and dropout, given their output.
  const BlockedMatrix* mask = nullptr;
  float mask_scale = 1.0f;
};

// C[m, n] = A[m, k] · B[k, n]. A and B have the same precision; C may have any, and is rounded
// last.
void Gemm(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
          BlockedMatrix* c);

// C = Aᵀ · B and, unless it is null, sums[m] = Σ_k A[k, m], for A [k, m] and B [k, n] of the same
// precision: the gradients of a layer's weight and bias from the gradient of its outputs and its
// inputs. C [m, n] is row-major float32 without padding.
void TransposedGemm(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c);

}  // namespace renzan
