// The step of an embedding row by any of the optimizers (sparse_optimizers.h), for kernels that
// Highway compiles once per instruction set. Include it after <hwy/highway.h>, in a .cc file that
// foreach_target.h includes again for each target.

#if defined(RENZAN_OPTIM_SPARSE_STEP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_OPTIM_SPARSE_STEP_INL_H_
#undef RENZAN_OPTIM_SPARSE_STEP_INL_H_
#else
#define RENZAN_OPTIM_SPARSE_STEP_INL_H_
#endif

#include <cstddef>

#include "renzan/optim/optimizer_steps-inl.h"
#include "renzan/optim/sparse_optimizers.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

// `s`: the row's states, one after another, as SparseOptimizerInfo lists them. `mean_square()`
// computes (1/dim)·Σ g² over all columns of the table; it is called by optimizers that need it.
template <class MeanSquare>
HWY_INLINE void StepOfRow(const SparseFactors& f, const float* g, size_t n,
                          const MeanSquare& mean_square, float* s, float* w) {
  using enum SparseOptimizerType;
  switch (f.type) {
    case kSgd:
      return Sgd(f.lr, g, n, w);
    case kAdagrad:
      return Adagrad(f.lr, f.epsilon, g, n, s, w);
    case kRowWiseAdagrad:
      return RowWiseAdagrad(f.lr, f.epsilon, g, n, mean_square(), s, w);
    case kAdam:
      return Adam(f.adam, g, n, s, s + n, w);
    case kMomentum:
      return Momentum(f.lr, f.momentum, g, n, s, w);
    case kFtrl:
      return Ftrl(f, g, n, s, s + n, w);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
