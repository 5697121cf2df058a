// The steps of a row that no sample looks up, where those rows move too (optimizer.sparse.rows:
// all): many of them at once, with the bits that they have one after another. Include it after
// <hwy/highway.h>, in a .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_OPTIM_IDLE_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_OPTIM_IDLE_STEPS_INL_H_
#undef RENZAN_OPTIM_IDLE_STEPS_INL_H_
#else
#define RENZAN_OPTIM_IDLE_STEPS_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "renzan/base/error.h"
#include "renzan/optim/optimizer_steps-inl.h"
#include "renzan/optim/sparse_optimizers.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

template <class D, class V = hn::Vec<D>>
HWY_INLINE bool SameBits(D, V a, V b) {
  const hn::RebindToUnsigned<D> bits;
  return hn::AllTrue(bits, hn::Eq(hn::BitCast(bits, a), hn::BitCast(bits, b)));
}

// Whether subtracting any value of [-most, most] leaves every bit of w: rounding is monotone.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool Absorbs(D d, V w, V most) {
  return SameBits(d, hn::Sub(w, most), w) && SameBits(d, hn::Add(w, most), w);
}

// Several vectors take their steps together: those of one wait for each other. Calls body(tag,
// their number, i) over [0, n), which is a multiple of kIdleLanes.
template <class Body>
HWY_INLINE void ForEachVectors(size_t n, const Body& body) {
  const hn::CappedTag<float, kIdleLanes> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) body(d, std::integral_constant<size_t, 4>(), i);
  for (; i + 2 * lanes <= n; i += 2 * lanes) body(d, std::integral_constant<size_t, 2>(), i);
  for (; i < n; i += lanes) body(d, std::integral_constant<size_t, 1>(), i);
}

template <class D, class V, size_t kVectors>
HWY_INLINE void LoadVectors(D d, const float* from, V (&to)[kVectors]) {
  for (size_t k = 0; k < kVectors; ++k) to[k] = hn::LoadU(d, from + k * hn::Lanes(d));
}
template <class D, class V, size_t kVectors>
HWY_INLINE void StoreVectors(D d, const V (&from)[kVectors], float* to) {
  for (size_t k = 0; k < kVectors; ++k) hn::StoreU(from[k], d, to + k * hn::Lanes(d));
}

// x = factor·x + 0, `times` times.
template <class D, class V, size_t kVectors>
HWY_INLINE void Fade(D d, float factor, size_t times, V (&x)[kVectors]) {
  for (; times > 0; --times) {
    bool same = true;
    for (size_t k = 0; k < kVectors; ++k) {
      const V next = hn::Add(hn::Mul(hn::Set(d, factor), x[k]), hn::Zero(d));
      same &= SameBits(d, next, x[k]);
      x[k] = next;
    }
    if (same) break;  // and so on for ever
  }
}

// Takes the steps with the gradient l2·w. `step(factors, k, g, &w)` is the optimizer's; before
// every few of them, `is_still(factors, k, w)` tells whether no later step can change w. Returns
// how many steps are left because of that.
template <class D, class V, size_t kVectors, class Step, class IsStill>
HWY_INLINE size_t TakeIdleSteps(D d, const IdleSteps& idle, V (&w)[kVectors], const Step& step,
                                const IsStill& is_still) {
  constexpr size_t kBetweenChecks = 16;
  const size_t n = idle.steps.size();
  for (size_t i = 0; i < n; ++i) {
    const IdleStep& next = idle.steps[i];
    if (!idle.decays && i % kBetweenChecks == 0) {
      bool still = true;
      for (size_t k = 0; k < kVectors; ++k) still = still && is_still(next.optimizer, k, w[k]);
      if (still) return n - i;
    }
    for (size_t k = 0; k < kVectors; ++k) {
      V g = hn::Zero(d);
      if (idle.l2 != 0.0f) g = hn::Add(g, hn::Mul(hn::Set(d, idle.l2), w[k]));
      if (next.kept != 1.0f) w[k] = hn::Mul(w[k], hn::Set(d, next.kept));
      step(next.optimizer, k, g, w[k]);
    }
  }
  return 0;
}

HWY_INLINE void IdleSgd(const IdleSteps& idle, size_t n, float* w) {
  ForEachVectors(n, [&](auto d, auto vectors, size_t i) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V value[vectors()];
    LoadVectors(d, w + i, value);
    TakeIdleSteps(
        d, idle, value,
        [&](const SparseFactors& f, size_t, V g, V& x) HWY_ATTR { SgdOf(d, f.lr, g, x); },
        [](const SparseFactors&, size_t, V) HWY_ATTR { return true; });
    StoreVectors(d, value, w + i);
  });
}

HWY_INLINE void IdleAdagrad(const IdleSteps& idle, size_t n, float* s, float* w) {
  ForEachVectors(n, [&](auto d, auto vectors, size_t i) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V sum[vectors()], value[vectors()];
    LoadVectors(d, s + i, sum);
    LoadVectors(d, w + i, value);
    TakeIdleSteps(
        d, idle, value,
        [&](const SparseFactors& f, size_t k, V g, V& x)
            HWY_ATTR { AdagradOf(d, f.lr, f.epsilon, g, sum[k], x); },
        [](const SparseFactors&, size_t, V) HWY_ATTR { return true; });
    StoreVectors(d, sum, s + i);
    StoreVectors(d, value, w + i);
  });
}

// Without decay, |m| only falls, and so does its correction: no later step is larger than
// lr·|m|·correct1 / ε with the largest lr. Twice that leaves room for how 1 / (1 - β₁ᵗ) is rounded.
HWY_INLINE void IdleAdam(const IdleSteps& idle, size_t n, float* m, float* v, float* w) {
  ForEachVectors(n, [&](auto d, auto vectors, size_t i) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V mean[vectors()], square[vectors()], value[vectors()];
    LoadVectors(d, m + i, mean);
    LoadVectors(d, v + i, square);
    LoadVectors(d, w + i, value);
    const size_t left = TakeIdleSteps(
        d, idle, value,
        [&](const SparseFactors& f, size_t k, V g, V& x)
            HWY_ATTR { AdamOf(d, f.adam, g, mean[k], square[k], x); },
        [&](const SparseFactors& f, size_t k, V x) HWY_ATTR {
          const V corrected = hn::Mul(hn::Abs(mean[k]), hn::Set(d, 2 * f.adam.correct1));
          return Absorbs(
              d, x,
              hn::Div(hn::Mul(hn::Set(d, idle.most_rate), corrected), hn::Set(d, f.adam.epsilon)));
        });
    if (left > 0) {
      const AdamFactors& f = idle.steps.back().optimizer.adam;
      Fade(d, f.beta1, left, mean);
      Fade(d, f.beta2, left, square);
    }
    StoreVectors(d, mean, m + i);
    StoreVectors(d, square, v + i);
    StoreVectors(d, value, w + i);
  });
}

HWY_INLINE void IdleMomentum(const IdleSteps& idle, size_t n, float* b, float* w) {
  ForEachVectors(n, [&](auto d, auto vectors, size_t i) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    V sum[vectors()], value[vectors()];
    LoadVectors(d, b + i, sum);
    LoadVectors(d, w + i, value);
    const size_t left = TakeIdleSteps(
        d, idle, value,
        [&](const SparseFactors& f, size_t k, V g, V& x)
            HWY_ATTR { MomentumOf(d, f.lr, f.momentum, g, sum[k], x); },
        [&](const SparseFactors&, size_t k, V x) HWY_ATTR {
          return Absorbs(d, x, hn::Mul(hn::Set(d, idle.most_rate), hn::Abs(sum[k])));
        });
    if (left > 0) Fade(d, idle.steps.back().optimizer.momentum, left, sum);
    StoreVectors(d, sum, b + i);
    StoreVectors(d, value, w + i);
  });
}

// Of values w [n] and their states, the j-th of which is at s + j·n; n is a multiple of kIdleLanes.
HWY_INLINE void TakeSteps(const IdleSteps& idle, size_t n, float* s, float* w) {
  if (idle.steps.empty()) return;
  using enum SparseOptimizerType;
  switch (idle.steps[0].optimizer.type) {
    case kSgd:
      return IdleSgd(idle, n, w);
    case kAdagrad:
      return IdleAdagrad(idle, n, s, w);
    case kAdam:
      return IdleAdam(idle, n, s, s + n, w);
    case kMomentum:
      return IdleMomentum(idle, n, s, w);
    case kRowWiseAdagrad:
    case kFtrl:
      CHECK_MSG(false, "its idle rows do not move");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
