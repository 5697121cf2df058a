#include "renzan/nn/elementwise.h"

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/base/simd_for_each-inl.h"

// Every operation is rounded by itself, so every target gives the same bits.

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void ReluBackward(const float* y, float* dy, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto positive = hn::Gt(hn::LoadU(d, y + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, dy + i)), d, dy + i);
  });
}

void Multiply(const float* a, const float* b, float* y, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
}

void MultiplyAdd(const float* a, const float* b, const float* c, float* y, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto product = hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    hn::StoreU(hn::Add(product, hn::LoadU(d, c + i)), d, y + i);
  });
}

void Add(const float* a, float* y, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, a + i)), d, y + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {
namespace {

void CheckSameShape(const BlockedMatrix& a, const BlockedMatrix& b) {
  CHECK(a.rows() == b.rows() && a.columns() == b.columns());
}

}  // namespace

HWY_EXPORT(ReluBackward);
HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyAdd);
HWY_EXPORT(Add);

void ReluBackward(const BlockedMatrix& y, BlockedMatrix* dy) {
  CheckSameShape(y, *dy);
  HWY_DYNAMIC_DISPATCH(ReluBackward)(y.data(), dy->data(), y.size());
}
void Multiply(const BlockedMatrix& a, const BlockedMatrix& b, BlockedMatrix* y) {
  CheckSameShape(a, b);
  CheckSameShape(a, *y);
  HWY_DYNAMIC_DISPATCH(Multiply)(a.data(), b.data(), y->data(), a.size());
}
void MultiplyAdd(const BlockedMatrix& a, const BlockedMatrix& b, const BlockedMatrix& c,
                 BlockedMatrix* y) {
  CheckSameShape(a, b);
  CheckSameShape(a, c);
  CheckSameShape(a, *y);
  HWY_DYNAMIC_DISPATCH(MultiplyAdd)(a.data(), b.data(), c.data(), y->data(), a.size());
}
void Add(const BlockedMatrix& a, BlockedMatrix* y) {
  CheckSameShape(a, *y);
  HWY_DYNAMIC_DISPATCH(Add)(a.data(), y->data(), a.size());
}

}  // namespace renzan
#endif
