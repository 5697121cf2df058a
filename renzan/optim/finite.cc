#include "renzan/optim/finite.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/optim/finite.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/optim/finite-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

bool AllFiniteIn(const float* values, size_t n) { return AllFinite(values, n); }

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(AllFiniteIn);

bool AllFinite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(AllFiniteIn)(values.data(), values.size());
}

}  // namespace renzan
#endif
