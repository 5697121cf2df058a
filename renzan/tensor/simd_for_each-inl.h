// The array loop shared by all kernels that Highway compiles once per instruction set. Include it
// after <hwy/highway.h>, in a .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_BASE_SIMD_FOR_EACH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_BASE_SIMD_FOR_EACH_INL_H_
#undef RENZAN_BASE_SIMD_FOR_EACH_INL_H_
#else
#define RENZAN_BASE_SIMD_FOR_EACH_INL_H_
#endif

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

// Calls body(tag, i) over [0, n) in whole vectors, then one element at a time with the same
// operations: nothing beyond n is accessed, and an element's result does not depend on its
// position.
template <class Body>
HWY_INLINE void ForEach(size_t n, const Body& body) {
  const hwy::HWY_NAMESPACE::ScalableTag<float> wide;
  const hwy::HWY_NAMESPACE::CappedTag<float, 1> one;
  const size_t lanes = hwy::HWY_NAMESPACE::Lanes(wide);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) body(wide, i);
  for (; i < n; ++i) body(one, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
