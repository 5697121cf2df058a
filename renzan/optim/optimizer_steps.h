#pragma once

// One step of each optimizer over an array of dense parameters; those of embedding rows are in
// optimizer_steps-inl.h. Each element is computed independently of its position, and products and
// sums are rounded separately: any split of the work and any instruction set give the same bits.
// Thread-safe.

#include <cstdint>

namespace renzan {

// SGD: w -= lr·g
void SgdStep(float lr, const float* g, int64_t n, float* w);

// Adagrad (Duchi et al., 2011): s += g²; w -= lr·g / (√s + ε)
void AdagradStep(float lr, float epsilon, const float* g, int64_t n, float* s, float* w);

// Adam's factors, each rounded to float32 once.
struct AdamFactors {
  AdamFactors() = default;
  // `step` counts from 0.
  AdamFactors(double learning_rate, double epsilon, double beta1, double beta2, int64_t step);
  float lr = 0, epsilon = 0;
  float beta1 = 0, rest1 = 0, beta2 = 0, rest2 = 0;  // rest = 1 - beta
  float correct1 = 0, correct2 = 0;                  // 1 / (1 - betaᵗ), t = step + 1
};

// Adam (Kingma & Ba, 2015): m = β₁m + (1-β₁)g; v = β₂v + (1-β₂)g²; w -= lr·m̂ / (√v̂ + ε),
// m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ)
void AdamStep(const AdamFactors& factors, const float* g, int64_t n, float* m, float* v, float* w);

// x *= factor
void ScaleValues(float factor, int64_t n, float* x);

}  // namespace renzan
