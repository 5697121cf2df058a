#include "renzan/nn/dense_optimizer.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/dense_optimizer.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls step(lanes, i) over [0, n): the states are aligned and padded, so whole vectors always fit
// except in the caller's arrays; the tail is done one element at a time with the same operations.
template <class Body>
void ForEach(size_t n, Body body) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(wide) <= n; i += hn::Lanes(wide)) body(wide, i);
  for (; i < n; ++i) body(one, i);
}

void Sgd(float lr, const float* g, float* w, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Sub(hn::LoadU(d, w + i), hn::Mul(hn::Set(d, lr), hn::LoadU(d, g + i))), d,
               w + i);
  });
}

void Adagrad(float lr, float epsilon, const float* g, float* s, float* w, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto grad = hn::LoadU(d, g + i);
    const auto sum = hn::Add(hn::LoadU(d, s + i), hn::Mul(grad, grad));
    hn::StoreU(sum, d, s + i);
    const auto step =
        hn::Div(hn::Mul(hn::Set(d, lr), grad), hn::Add(hn::Sqrt(sum), hn::Set(d, epsilon)));
    hn::StoreU(hn::Sub(hn::LoadU(d, w + i), step), d, w + i);
  });
}

void Adam(float lr, float epsilon, float beta1, float rest1, float beta2, float rest2,
          float correct1, float correct2, const float* g, float* m, float* v, float* w, size_t n) {
  ForEach(n, [&](auto d, size_t i) HWY_ATTR {
    const auto grad = hn::LoadU(d, g + i);
    const auto mean =
        hn::Add(hn::Mul(hn::Set(d, beta1), hn::LoadU(d, m + i)), hn::Mul(hn::Set(d, rest1), grad));
    const auto square = hn::Add(hn::Mul(hn::Set(d, beta2), hn::LoadU(d, v + i)),
                                hn::Mul(hn::Set(d, rest2), hn::Mul(grad, grad)));
    hn::StoreU(mean, d, m + i);
    hn::StoreU(square, d, v + i);
    const auto denominator =
        hn::Add(hn::Sqrt(hn::Mul(square, hn::Set(d, correct2))), hn::Set(d, epsilon));
    const auto step =
        hn::Div(hn::Mul(hn::Set(d, lr), hn::Mul(mean, hn::Set(d, correct1))), denominator);
    hn::StoreU(hn::Sub(hn::LoadU(d, w + i), step), d, w + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "renzan/base/error.h"

namespace renzan {

HWY_EXPORT(Sgd);
HWY_EXPORT(Adagrad);
HWY_EXPORT(Adam);

DenseOptimizer::DenseOptimizer(const DenseOptimizerOptions& options, size_t size)
    : options_(options) {
  if (options.type == "adagrad") {
    states_.push_back({"adagrad", AlignedBuffer(size)});
    std::fill_n(states_[0].values.data(), size, static_cast<float>(options.initial_accumulator));
  } else if (options.type == "adam") {
    states_.push_back({"adam_m", AlignedBuffer(size)});
    states_.push_back({"adam_v", AlignedBuffer(size)});
  } else {
    CHECK_MSG(options.type == "sgd", "dense optimizer {}", options.type);
  }
}

void DenseOptimizer::Apply(ThreadPool& pool, double learning_rate, int64_t step,
                           std::span<const float> gradient, std::span<float> parameters) {
  CHECK(gradient.size() == parameters.size());
  const float lr = static_cast<float>(learning_rate);
  const float epsilon = static_cast<float>(options_.epsilon);
  const double t = static_cast<double>(step + 1);
  const float correct1 = static_cast<float>(1.0 / (1.0 - std::pow(options_.beta1, t)));
  const float correct2 = static_cast<float>(1.0 / (1.0 - std::pow(options_.beta2, t)));
  pool.ParallelRanges(parameters.size(), [&](int, size_t begin, size_t end) {
    const float* g = gradient.data() + begin;
    float* w = parameters.data() + begin;
    const size_t n = end - begin;
    if (options_.type == "sgd") {
      HWY_DYNAMIC_DISPATCH(Sgd)(lr, g, w, n);
    } else if (options_.type == "adagrad") {
      HWY_DYNAMIC_DISPATCH(Adagrad)(lr, epsilon, g, states_[0].values.data() + begin, w, n);
    } else {
      HWY_DYNAMIC_DISPATCH(Adam)
      (lr, epsilon, static_cast<float>(options_.beta1), static_cast<float>(1 - options_.beta1),
       static_cast<float>(options_.beta2), static_cast<float>(1 - options_.beta2), correct1,
       correct2, g, states_[0].values.data() + begin, states_[1].values.data() + begin, w, n);
    }
  });
}

}  // namespace renzan
#endif
