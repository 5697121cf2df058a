#include "renzan/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/optim/gradient_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

// Plain loops: the compiler vectorises the 16 sums and may neither reorder nor fuse.
double SumChunk(const float* x, size_t n) {
  double part[16] = {};
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (size_t lane = 0; lane < 16; ++lane) {
      const double value = static_cast<double>(x[i + lane]);
      part[lane] += value * value;
    }
  for (size_t lane = 0; i + lane < n; ++lane) {
    const double value = static_cast<double>(x[i + lane]);
    part[lane] += value * value;
  }
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; ++lane) part[lane] += part[lane + half];
  return part[0];
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(SumChunk);

double SumOfSquares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumChunk)(x, static_cast<size_t>(n));
}

double SumOfSquares(ThreadPool& pool, std::span<const float> x) {
  constexpr size_t kChunk = 4096;
  thread_local std::vector<double> of_this_thread;
  std::vector<double>& chunks = of_this_thread;
  chunks.resize((x.size() + kChunk - 1) / kChunk);
  pool.ParallelRanges(chunks.size(), [&](int, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const std::span<const float> chunk =
          x.subspan(i * kChunk, std::min(kChunk, x.size() - i * kChunk));
      chunks[i] = SumOfSquares(chunk.data(), static_cast<int64_t>(chunk.size()));
    }
  });
  return TreeSum(chunks);
}

double TreeSum(std::span<double> terms) {
  if (terms.empty()) return 0;
  for (size_t stride = 1; stride < terms.size(); stride *= 2)
    for (size_t i = 0; i + stride < terms.size(); i += 2 * stride) terms[i] += terms[i + stride];
  return terms[0];
}

float ClipFactor(double squared_norm, double max_norm) {
  constexpr double kTorchEpsilon = 1e-6;
  if (!std::isfinite(squared_norm)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::min(1.0, max_norm / (std::sqrt(squared_norm) + kTorchEpsilon)));
}

}  // namespace renzan
#endif
