// What happens to a matrix product's sums. For the kernels of gemm.cc and gemm_tiles.cc, which
// Highway compiles once per target.

#if defined(RENZAN_NN_GEMM_RESULTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_NN_GEMM_RESULTS_INL_H_
#undef RENZAN_NN_GEMM_RESULTS_INL_H_
#else
#define RENZAN_NN_GEMM_RESULTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "renzan/nn/gemm.h"
#include "renzan/tensor/bfloat16-inl.h"
#include "renzan/tensor/blocked_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One to four registers hold a row of a block.
using Tag = hn::CappedTag<float, BlockedMatrix::kLanes>;
constexpr int64_t kBlock = BlockedMatrix::kLanes;
constexpr int kParts = kBlock / static_cast<int>(hn::MaxLanes(Tag()));

// Where the results go, and what GemmOptions asks for. Row i of the tile is at c + i·c_row and mask
// + i·kBlock; the tile begins at block `first_block` of 16 columns.
struct Results {
  float* c;
  int64_t c_row, c_block;
  int64_t columns;  // of C
  bool bfloat16 = false;
  const float* bias = nullptr;
  bool accumulate = false, relu = false;
  const float* mask = nullptr;
  int64_t mask_block = 0;
  float mask_scale = 1.0f;
  int64_t first_block = 0;
};

// The first n values at p, followed by zeros.
inline HWY_NOINLINE hn::Vec<Tag> LoadPart(Tag d, const float* p, int64_t n) {
#if HWY_TARGET == HWY_AVX3  // a masked load does not touch the rest
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(n, 0))), d, p);
#endif
  HWY_ALIGN float padded[kBlock] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = p[i];
  return hn::Load(d, padded);
}

// The first n values of v.
inline HWY_NOINLINE void StorePart(hn::Vec<Tag> v, Tag d, float* p, int64_t n) {
#if HWY_TARGET == HWY_AVX3
  return hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(n, 0))), d, p);
#endif
  HWY_ALIGN float padded[kBlock];
  hn::Store(v, d, padded);
  for (int64_t i = 0; i < n; ++i) p[i] = padded[i];
}

HWY_INLINE hn::Vec<Tag> LoadFirst(Tag d, const float* p, int64_t n) {
  return n >= static_cast<int64_t>(hn::Lanes(d)) ? hn::LoadU(d, p) : LoadPart(d, p, n);
}

HWY_INLINE void StoreFirst(hn::Vec<Tag> v, Tag d, float* p, int64_t n) {
  if (n >= static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, p);
  } else {
    StorePart(v, d, p, n);
  }
}

// Columns [16·block, 16·block + 16) of row `row` of a bfloat16 matrix whose rows begin at `rows`.
// Two blocks of 16 columns share a line; blocks of 32 are block_stride lanes apart.
HWY_INLINE const BFloat16Bits* BFloat16At(const float* rows, int64_t block_stride, int64_t row,
                                          int64_t block) {
  return reinterpret_cast<const BFloat16Bits*>(rows + row * kBlock + block / 2 * block_stride) +
         block % 2 * kBlock;
}
HWY_INLINE BFloat16Bits* BFloat16At(float* rows, int64_t block_stride, int64_t row, int64_t block) {
  return const_cast<BFloat16Bits*>(
      BFloat16At(static_cast<const float*>(rows), block_stride, row, block));
}

HWY_INLINE hn::Vec<Tag> Relu(hn::Vec<Tag> y, Tag d) {
  return hn::IfThenZeroElse(hn::Lt(y, hn::Zero(d)), y);
}

HWY_INLINE hn::Vec<Tag> Masked(hn::Vec<Tag> y, hn::Vec<Tag> mask, Tag d, float scale) {
  return hn::IfThenElseZero(hn::Gt(mask, hn::Zero(d)), hn::Mul(y, hn::Set(d, scale)));
}

// Finishes a tile of results, given its sums [rows, blocks·16].
inline HWY_NOINLINE void Finish(const float* sums, int64_t rows, int64_t blocks, const Results& r) {
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < blocks; ++j, sums += kBlock) {
      const int64_t block = r.first_block + j;
      const int64_t columns = std::min(kBlock, r.columns - block * kBlock);
      // Where a row of bfloat16 is written: in place, unless it is a partial one.
      HWY_ALIGN BFloat16Bits partial[kBlock];
      BFloat16Bits* const c = r.bfloat16 ? BFloat16At(r.c, r.c_block, i, block) : nullptr;
      BFloat16Bits* const rounded = columns >= kBlock ? c : partial;
      for (int64_t lane = 0; lane < kBlock; lane += lanes) {
        auto y = hn::Load(d, sums + lane);
        if (r.relu) y = Relu(y, d);
        if (r.mask != nullptr) {
          const auto mask = r.bfloat16
                                ? LoadBFloat16(d, BFloat16At(r.mask, r.mask_block, i, block) + lane)
                                : hn::Load(d, r.mask + i * kBlock + block * r.mask_block + lane);
          y = Masked(y, mask, d, r.mask_scale);
        }
        if (r.bfloat16) {
          StoreBFloat16(y, d, rounded + lane);
        } else {
          StoreFirst(y, d, r.c + i * r.c_row + block * r.c_block + lane, columns - lane);
        }
      }
      if (r.bfloat16 && rounded != c) std::copy_n(partial, columns, c);
    }
  }
}

#if HWY_TARGET == HWY_AVX3
// Finish() for rows [begin, end) of one block of 32 columns of bfloat16, on processors that round a
// line at once (AVX512_BF16). Their instruction reads denormal numbers as zero, as FlushDenormals
// does.
HWY_INLINE void FinishLines(const float* sums, int64_t begin, int64_t end, const Results& r) {
  const Tag d;
  const hn::Repartition<uint16_t, Tag> line;
  const auto columns = hn::FirstN(
      line, static_cast<size_t>(std::min(2 * kBlock, r.columns - r.first_block * kBlock)));
  sums += begin * 2 * kBlock;
  for (int64_t i = begin; i < end; ++i, sums += 2 * kBlock) {
    auto low = hn::Load(d, sums), high = hn::Load(d, sums + kBlock);
    if (r.relu) {
      low = Relu(low, d);
      high = Relu(high, d);
    }
    if (r.mask != nullptr) {
      const BFloat16Bits* mask = BFloat16At(r.mask, r.mask_block, i, r.first_block);
      low = Masked(low, LoadBFloat16(d, mask), d, r.mask_scale);
      high = Masked(high, LoadBFloat16(d, mask + kBlock), d, r.mask_scale);
    }
    hn::Vec<decltype(line)> rounded;
    // Assembly, because this target lacks the intrinsic.
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded.raw) : "v"(low.raw), "v"(high.raw));
    hn::BlendedStore(rounded, columns, line,
                     reinterpret_cast<uint16_t*>(BFloat16At(r.c, r.c_block, i, r.first_block)));
  }
}
#endif

// The results of a whole product, starting at its first tile.
HWY_INLINE Results ResultsOf(const GemmOptions& options, BlockedMatrix* c) {
  Results r{.c = c->data(),
            .c_row = kBlock,
            .c_block = c->block_stride(),
            .columns = c->columns(),
            .bfloat16 = c->precision() == Precision::kBFloat16,
            .bias = options.bias,
            .accumulate = options.accumulate,
            .relu = options.relu};
  if (options.mask != nullptr) {
    r.mask = options.mask->data();
    r.mask_block = options.mask->block_stride();
    r.mask_scale = options.mask_scale;
  }
  return r;
}

// Row-major results. If `columns` is padded to whole blocks, the padding is written, too.
HWY_INLINE Results RowMajorResults(int64_t columns, float* c) {
  return {.c = c, .c_row = columns, .c_block = kBlock, .columns = columns};
}

// Moves from the tile in the first row to the one in row i.
HWY_INLINE void MoveDown(int64_t i, Results* r) {
  r->c += i * r->c_row;
  if (r->mask != nullptr) r->mask += i * kBlock;
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
