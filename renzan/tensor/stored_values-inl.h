// How kernels read and write the values of a matrix, which are float32 or bfloat16. Include it
// after <hwy/highway.h>, in a .cc file that foreach_target.h includes again for each target.

#if defined(RENZAN_TENSOR_STORED_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_TENSOR_STORED_VALUES_INL_H_
#undef RENZAN_TENSOR_STORED_VALUES_INL_H_
#else
#define RENZAN_TENSOR_STORED_VALUES_INL_H_
#endif

#include "renzan/tensor/bfloat16-inl.h"
#include "renzan/tensor/precision.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

struct Float32 {
  using Value = float;
  template <class D>
  static HWY_INLINE auto Load(D d, const Value* p) {
    return hwy::HWY_NAMESPACE::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE void Store(hwy::HWY_NAMESPACE::Vec<D> v, D d, Value* p) {
    hwy::HWY_NAMESPACE::StoreU(v, d, p);
  }
};

struct BFloat16 {
  using Value = BFloat16Bits;
  template <class D>
  static HWY_INLINE auto Load(D d, const Value* p) {
    return LoadBFloat16(d, p);
  }
  template <class D>
  static HWY_INLINE void Store(hwy::HWY_NAMESPACE::Vec<D> v, D d, Value* p) {
    StoreBFloat16(v, d, p);
  }
};

// body(Float32()) or body(BFloat16())
template <class Body>
HWY_INLINE void WithTypeOf(Precision precision, const Body& body) {
  if (precision == Precision::kFloat32) {
    body(Float32());
  } else {
    body(BFloat16());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
