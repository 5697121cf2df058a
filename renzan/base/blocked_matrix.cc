#include "renzan/base/blocked_matrix.h"

namespace renzan {
namespace {

constexpr int64_t kBlock = 2 * BlockedMatrix::kLanes;

// Most parts are whole blocks or halves of them: these loops are unrolled and vectorised.
template <class Convert>
void ForPart(int64_t n, const Convert& convert) {
  if (n == kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) convert(i);
  } else if (n == kBlock / 2) {
    for (int64_t i = 0; i < kBlock / 2; ++i) convert(i);
  } else {
    for (int64_t i = 0; i < n; ++i) convert(i);
  }
}

}  // namespace

void BlockedMatrix::SetBFloat16Row(int64_t row, int64_t column, const float* values, int64_t n) {
  ForRowParts<kBlock>(row, column, n,
                      [&](int64_t at, int64_t offset, int64_t begin, int64_t count) {
                        const float* from = values + begin;
                        BFloat16Bits* to = reinterpret_cast<BFloat16Bits*>(data() + at) + offset;
                        ForPart(count, [=](int64_t i) { to[i] = ToBFloat16(from[i]); });
                      });
}

void BlockedMatrix::GetBFloat16Row(int64_t row, int64_t column, float* values, int64_t n) const {
  ForRowParts<kBlock>(
      row, column, n, [&](int64_t at, int64_t offset, int64_t begin, int64_t count) {
        const BFloat16Bits* from = reinterpret_cast<const BFloat16Bits*>(data() + at) + offset;
        float* to = values + begin;
        ForPart(count, [=](int64_t i) { to[i] = FromBFloat16(from[i]); });
      });
}

}  // namespace renzan
