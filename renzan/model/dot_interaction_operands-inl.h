// Layouts of the dot interaction's operands in tiles, built from half lines: 16 columns of
// bfloat16, which are 8 lanes of 32 bits. Every function has a twin for processors without AVX-512.

#if defined(RENZAN_MODEL_DOT_INTERACTION_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_MODEL_DOT_INTERACTION_OPERANDS_INL_H_
#undef RENZAN_MODEL_DOT_INTERACTION_OPERANDS_INL_H_
#else
#define RENZAN_MODEL_DOT_INTERACTION_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "renzan/tensor/bfloat16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kHalf = 8;                // lanes of half a line
constexpr int64_t kLine = 2 * kHalf;        // lanes of a line, which is a tile's row
constexpr int64_t kMaxVectors = 2 * kLine;  // two tiles high

inline const BFloat16Bits* Bits(const float* lanes) {
  return reinterpret_cast<const BFloat16Bits*>(lanes);
}
inline BFloat16Bits* Bits(float* lanes) { return reinterpret_cast<BFloat16Bits*>(lanes); }

// Row i of the packed lower triangle has i values and begins here.
constexpr int64_t TriangleRow(int64_t i) { return i * (i - 1) / 2; }

#if HWY_TARGET == HWY_AVX3

// Transposes four lanes of 16 rows: out[m] is lane m of every row; row(i) points to the four lanes
// of row i. Loading a quarter of the rows into each quarter of a vector halves the number of
// shuffles, which all share one port. Rows before quarter kFirst are undefined.
template <int kFirst = 0, class Row>
HWY_INLINE void TransposeFourLanes(const Row& row, __m512i* out) {
  const auto load = [&](int64_t i) HWY_ATTR {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row(i)));
  };
  const auto quarters = [&](int64_t i) HWY_ATTR {
    __m512i v = kFirst == 0 ? _mm512_castsi128_si512(load(i))
                            : _mm512_broadcast_i32x4(load(i + 4 * kFirst));
    if (kFirst < 1) v = _mm512_inserti32x4(v, load(i + 4), 1);
    if (kFirst < 2) v = _mm512_inserti32x4(v, load(i + 8), 2);
    if (kFirst < 3) v = _mm512_inserti32x4(v, load(i + 12), 3);
    return v;
  };
  const __m512i x0 = quarters(0), x1 = quarters(1), x2 = quarters(2), x3 = quarters(3);
  const __m512i low01 = _mm512_unpacklo_epi32(x0, x1), high01 = _mm512_unpackhi_epi32(x0, x1);
  const __m512i low23 = _mm512_unpacklo_epi32(x2, x3), high23 = _mm512_unpackhi_epi32(x2, x3);
  out[0] = _mm512_unpacklo_epi64(low01, low23);
  out[1] = _mm512_unpackhi_epi64(low01, low23);
  out[2] = _mm512_unpacklo_epi64(high01, high23);
  out[3] = _mm512_unpackhi_epi64(high01, high23);
}

#endif

// to[p, i] = lane p of half i: 16 halves at x + offsets[i] become 8 lines.
HWY_INLINE void TransposeHalves(const float* x, const int64_t* offsets, float* to) {
#if HWY_TARGET == HWY_AVX3
  for (int64_t p = 0; p < kHalf; p += 4) {
    __m512i lines[4];
    TransposeFourLanes([&](int64_t i) HWY_ATTR { return x + offsets[i] + p; }, lines);
    for (int64_t m = 0; m < 4; ++m) _mm512_store_si512(to + (p + m) * kLine, lines[m]);
  }
#else
  for (int64_t p = 0; p < kHalf; ++p)
    for (int64_t i = 0; i < kLine; ++i)
      std::memcpy(to + p * kLine + i, x + offsets[i] + p, sizeof(float));
#endif
}

// Interleaves the columns of two halves, which fill a line. A missing second half counts as zeros.
HWY_INLINE void PairHalves(const float* low, const float* high, float* to) {
#if HWY_TARGET == HWY_AVX3
  const auto load = [](const float* half) HWY_ATTR {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(half));
  };
  const hn::FixedTag<uint16_t, 32> d;
  HWY_ALIGN static constexpr uint16_t kPairs[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  __m512i line = _mm512_zextsi256_si512(load(low));
  if (high != nullptr) line = _mm512_inserti64x4(line, load(high), 1);
  _mm512_store_si512(to, _mm512_permutexvar_epi16(hn::Load(d, kPairs).raw, line));
#else
  for (int64_t i = 0; i < kLine; ++i) {
    Bits(to)[2 * i] = Bits(low)[i];
    Bits(to)[2 * i + 1] = high == nullptr ? uint16_t{0} : Bits(high)[i];
  }
#endif
}

#if HWY_TARGET == HWY_AVX3

// Rows c to c + 7, for c = 8·kQuarter, of the symmetric matrix whose lower triangle's row c begins
// at `packed`. Rows 2p and 2p + 1 of the triangle are interleaved at pairs + p·16 lanes: quarter q
// holds columns 8q to 8q + 3, and the same quarter of the next tile columns 8q + 4 to 8q + 7.
template <int kQuarter>
HWY_INLINE void RowsOfSymmetricMatrix(const BFloat16Bits* packed, const float* pairs, float* g) {
  constexpr int64_t kFirst = 8 * kQuarter;
  g += kFirst * kLine;
  for (int64_t c = kFirst; c < kFirst + 8; c += 4) {
    const float* quarter = pairs + (c - kFirst) / 4 * kLine * kLine + 4 * kQuarter;
    __m512i lines[4];  // the triangle's columns from c on
    TransposeFourLanes<kQuarter>([&](int64_t p) HWY_ATTR { return quarter + p * kLine; }, lines);
    for (int64_t m = 0; m < 4; ++m, g += kLine) {
      // Row c + m of the triangle, followed by its column below that.
      const __mmask32 row = static_cast<__mmask32>((int64_t{1} << (c + m)) - 1);
      _mm512_store_si512(g, _mm512_mask_loadu_epi16(lines[m], row, packed));
      Bits(g)[c + m] = 0;
      packed += c + m;
    }
  }
}

#endif

// The same for two lines: interleaves their first halves and, one tile further on, their second
// halves.
HWY_INLINE void PairLines(const float* low, const float* high, float* to) {
#if HWY_TARGET == HWY_AVX3
  // Unpacking takes the first half of every quarter, then the second half.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i x = _mm512_permutexvar_epi64(order, _mm512_load_si512(low));
  const __m512i y = high == nullptr ? _mm512_setzero_si512()
                                    : _mm512_permutexvar_epi64(order, _mm512_load_si512(high));
  _mm512_store_si512(to, _mm512_unpacklo_epi16(x, y));
  _mm512_store_si512(to + kLine * kLine, _mm512_unpackhi_epi16(x, y));
#else
  PairHalves(low, high, to);
  PairHalves(low + kHalf, high == nullptr ? nullptr : high + kHalf, to + kLine * kLine);
#endif
}

// First step of unpacking a lower triangle of f rows: interleaves each two adjacent rows. Reads 32
// values of every row. `pairs` is two tiles, whose lines from (f + 1) / 2 on are zero.
HWY_INLINE void PairTriangle(const BFloat16Bits* packed, int64_t f, float* pairs) {
#if HWY_TARGET == HWY_AVX3
  for (int64_t i = 0; i < f; i += 2, pairs += kLine) {
    const __m512i low = _mm512_loadu_si512(packed);
    packed += i;
    const __m512i high = i + 1 < f ? _mm512_loadu_si512(packed) : _mm512_setzero_si512();
    packed += i + 1;
    _mm512_store_si512(pairs, _mm512_unpacklo_epi16(low, high));
    _mm512_store_si512(pairs + kLine * kLine, _mm512_unpackhi_epi16(low, high));
  }
#else
  (void)packed, (void)f, (void)pairs;
#endif
}

// Second step: g [f, 32] = the symmetric matrix with zeros on the diagonal. Writes up to 32 rows.
HWY_INLINE void UnpackTriangle(const BFloat16Bits* packed, const float* pairs, int64_t f,
                               float* g) {
#if HWY_TARGET == HWY_AVX3
  RowsOfSymmetricMatrix<0>(packed, pairs, g);
  if (f > 8) RowsOfSymmetricMatrix<1>(packed + TriangleRow(8), pairs, g);
  if (f > 16) RowsOfSymmetricMatrix<2>(packed + TriangleRow(16), pairs, g);
  if (f > 24) RowsOfSymmetricMatrix<3>(packed + TriangleRow(24), pairs, g);
#else
  (void)pairs;
  BFloat16Bits* values = Bits(g);
  std::fill_n(g, f * kLine, 0.0f);
  for (int64_t i = 1; i < f; ++i)
    for (int64_t j = 0; j < i; ++j)
      values[i * kMaxVectors + j] = values[j * kMaxVectors + i] = packed[TriangleRow(i) + j];
#endif
}

#if HWY_TARGET == HWY_AVX3

// Rounding in hardware, in assembly because this target lacks the intrinsics. It reads denormal
// numbers as zero; products in tiles never have any.
struct HardwareRounding {
  static HWY_INLINE void Half(const float* from, BFloat16Bits* to) {
    __m256i half;
    asm("vcvtneps2bf16 %1, %0" : "=v"(half) : "v"(_mm512_load_ps(from)));
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(to), half);
  }
  static HWY_INLINE void Line(const float* low, const float* high, BFloat16Bits* to) {
    __m512i line;
    asm("vcvtne2ps2bf16 %2, %1, %0"
        : "=v"(line)
        : "v"(_mm512_load_ps(high)), "v"(_mm512_load_ps(low)));
    _mm512_storeu_si512(to, line);
  }
};

#endif

struct SoftwareRounding {
  static HWY_INLINE void Half(const float* from, BFloat16Bits* to) {
    const hn::CappedTag<float, 16> d;
    for (int64_t i = 0; i < kLine; i += static_cast<int64_t>(hn::Lanes(d)))
      StoreBFloat16(hn::Load(d, from + i), d, to + i);
  }
  static HWY_INLINE void Line(const float* low, const float* high, BFloat16Bits* to) {
    Half(low, to);
    Half(high, to + kLine);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
