#include "renzan/nn/gemm.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/gemm_tiles.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/nn/gemm_operands-inl.h"
#include "renzan/nn/gemm_results-inl.h"

// The loops over a tile's registers must be unrolled before the compiler assigns registers.
#undef RENZAN_UNROLL
#define RENZAN_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A tile of C has this many rows and blocks: 24 of AVX-512's 32 registers, 12 of AVX2's 16, 8 of
// SSE4's 16, 16 of NEON's 32.
constexpr int kTileRows = kParts == 1 ? 8 : kParts == 2 ? 6 : HWY_TARGET == HWY_SSE4 ? 2 : 4;
constexpr int kTileBlocks = kParts == 1 ? 3 : 1;

// Operands consist of lanes of 32 bits: a float32, or two bfloat16 that are adjacent in k.
struct FloatLanes {
  static HWY_INLINE hn::Vec<Tag> One() { return hn::Set(Tag(), 1.0f); }
  // x · y + sum, in every lane
  static HWY_INLINE hn::Vec<Tag> MulAdd(hn::Vec<Tag> x, hn::Vec<Tag> y, hn::Vec<Tag> sum) {
    return hn::MulAdd(x, y, sum);
  }
};

#if HWY_TARGET == HWY_AVX3
struct BFloat16Pairs {
  static HWY_INLINE hn::Vec<Tag> One() {
    return hn::BitCast(Tag(), hn::Set(hn::RebindToUnsigned<Tag>(), 0x3F803F80u));
  }
  // x[0] · y[0] + (x[1] · y[1] + sum). Not an intrinsic, because those of this target lack it.
  static HWY_INLINE hn::Vec<Tag> MulAdd(hn::Vec<Tag> x, hn::Vec<Tag> y, hn::Vec<Tag> sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
    return sum;
  }
};
#endif

// A tile's operands, in lanes. Element (i, k) of A is at a[i·16 + k] within a block of 16 k; blocks
// are a_block apart. Element (i, k) of a transposed A is at a[k·16 + i]. Element (k, j) of B is at
// b[k·16 + j] within a block of columns.
struct Operands {
  int64_t k;
  const float* a;
  int64_t a_block;
  const float* b;
  int64_t b_block;
  // Prefetched meanwhile: next_b_lines cache lines for every 16 k.
  const float* next_b;
  int next_b_lines;
};

HWY_INLINE void Prefetch(const float* p) { __builtin_prefetch(p); }

template <class Lanes, bool kTransposed, int kRows, int kBlocks>
HWY_NOINLINE void Tile(const Operands& p, const Results& r) {
  constexpr int kVectors = kBlocks * kParts;
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // The block of vector j, and its first column in the block and in C.
  const auto block = [](int j) { return j / kParts; };
  const auto lane = [lanes](int j) { return j % kParts * lanes; };
  const auto column = [&](int j) { return (r.first_block + block(j)) * kBlock + lane(j); };
  const auto at_c = [&](int i, int j) {
    return r.c + i * r.c_row + (r.first_block + block(j)) * r.c_block + lane(j);
  };
  const auto at_mask = [&](int i, int j) {
    return r.mask + i * kBlock + (r.first_block + block(j)) * r.mask_block + lane(j);
  };

  hn::Vec<Tag> sum[kRows][kVectors];
  RENZAN_UNROLL for (int j = 0; j < kVectors; ++j) {
    const auto bias =
        r.bias == nullptr ? hn::Zero(d) : LoadFirst(d, r.bias + column(j), r.columns - column(j));
    RENZAN_UNROLL for (int i = 0; i < kRows; ++i) {
      sum[i][j] = bias;
      if (r.bfloat16) {
        const auto* c = BFloat16At(r.c, r.c_block, i, r.first_block + block(j)) + lane(j);
        if (r.accumulate) sum[i][j] = LoadBFloat16(d, c);
        __builtin_prefetch(c);
        if (r.mask != nullptr)
          __builtin_prefetch(BFloat16At(r.mask, r.mask_block, i, r.first_block + block(j)));
      } else {
        if (r.accumulate) sum[i][j] = hn::LoadU(d, at_c(i, j));
        Prefetch(at_c(i, j));
        if (r.mask != nullptr) Prefetch(at_mask(i, j));
      }
    }
  }
  const float* a = p.a;
  const float* b = p.b;
  const float* next_b = p.next_b;
  for (int64_t k0 = 0; k0 < p.k; k0 += kBlock) {
    for (int line = 0; line < p.next_b_lines; ++line, next_b += kBlock) Prefetch(next_b);
    if (!kTransposed) {
      RENZAN_UNROLL for (int i = 0; i < kRows; ++i) Prefetch(a + (kRows + i) * kBlock);
    }
    const float* left = a;
    const auto add_one_k = [&]() HWY_ATTR {
      hn::Vec<Tag> right[kVectors];
      RENZAN_UNROLL for (int j = 0; j < kVectors; ++j) right[j] =
          hn::Load(d, b + block(j) * p.b_block + lane(j));
      b += kBlock;
      RENZAN_UNROLL for (int i = 0; i < kRows; ++i) {
        const auto x = hn::Set(d, left[kTransposed ? i : i * kBlock]);
        RENZAN_UNROLL for (int j = 0; j < kVectors; ++j) sum[i][j] =
            Lanes::MulAdd(x, right[j], sum[i][j]);
      }
      left += kTransposed ? kBlock : 1;
    };
    const int64_t count = std::min(kBlock, p.k - k0);
    if (count == kBlock && kRows == kTileRows && kParts <= 2) {
      // Unrolled, because the loop's own instructions would cost 6 % of a step.
      RENZAN_UNROLL for (int k = 0; k < kBlock; ++k) add_one_k();
    } else {
      for (int64_t k = 0; k < count; ++k) add_one_k();
    }
    a = kTransposed ? left : a + p.a_block;
  }
  if (r.bfloat16 && (r.first_block + kBlocks) * kBlock > r.columns) {
    HWY_ALIGN float sums[kRows * kBlocks * kBlock];
    RENZAN_UNROLL for (int i = 0; i < kRows; ++i) {
      RENZAN_UNROLL for (int j = 0; j < kVectors; ++j)
          hn::Store(sum[i][j], d, sums + (i * kBlocks + block(j)) * kBlock + lane(j));
    }
    return Finish(sums, kRows, kBlocks, r);
  }
  const auto line = [&](auto* rows, int64_t stride, int i, int j) {
    return BFloat16At(rows, stride, i, r.first_block + block(j)) + lane(j);
  };
  RENZAN_UNROLL for (int i = 0; i < kRows; ++i) {
    RENZAN_UNROLL for (int j = 0; j < kVectors; ++j) {
      auto y = sum[i][j];
      if (r.relu) y = Relu(y, d);
      if (r.mask != nullptr) {
        const auto mask = r.bfloat16 ? LoadBFloat16(d, line(r.mask, r.mask_block, i, j))
                                     : hn::Load(d, at_mask(i, j));
        y = Masked(y, mask, d, r.mask_scale);
      }
      if (r.bfloat16) {
        StoreBFloat16(y, d, line(r.c, r.c_block, i, j));
      } else {
        StoreFirst(y, d, at_c(i, j), r.columns - column(j));
      }
    }
  }
}

// A tile of full height, `blocks` blocks wide.
template <class Lanes, bool kTransposed>
HWY_INLINE void WholeTile(int64_t blocks, const Operands& p, const Results& r) {
  constexpr int kTwo = std::min(2, kTileBlocks);
  if (blocks == kTileBlocks) {
    Tile<Lanes, kTransposed, kTileRows, kTileBlocks>(p, r);
  } else if (blocks == kTwo) {
    Tile<Lanes, kTransposed, kTileRows, kTwo>(p, r);
  } else {
    Tile<Lanes, kTransposed, kTileRows, 1>(p, r);
  }
}

// The last rows of a block.
template <class Lanes, bool kTransposed>
HWY_INLINE void FewRows(int64_t rows, Operands p, Results r) {
  while (rows > 0) {
    const int64_t now = rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    if (now == 4) {
      Tile<Lanes, kTransposed, 4, 1>(p, r);
    } else if (now == 2) {
      Tile<Lanes, kTransposed, 2, 1>(p, r);
    } else {
      Tile<Lanes, kTransposed, 1, 1>(p, r);
    }
    rows -= now;
    p.a += now * (kTransposed ? 1 : kBlock);
    MoveDown(now, &r);
  }
}

// Up to kTileRows rows of a few blocks of columns.
template <class Lanes, bool kTransposed>
HWY_INLINE void RowsOf(int64_t rows, int64_t blocks, Operands p, Results r) {
  if (rows == kTileRows) return WholeTile<Lanes, kTransposed>(blocks, p, r);
  for (int64_t block = 0; block < blocks; ++block) {
    FewRows<Lanes, kTransposed>(rows, p, r);
    p.b += p.b_block;
    ++r.first_block;
  }
}

// A and B are in lanes; `results` belongs to the first tile.
template <class Lanes, bool kTransposed>
HWY_INLINE void AllTiles(const BlockedMatrix& a, const BlockedMatrix& b, const Results& results) {
  const int64_t m = kTransposed ? a.columns() : a.rows();
  const int64_t tiles = std::max<int64_t>(1, (m + kTileRows - 1) / kTileRows);
  for (int64_t block = 0, blocks; block < b.num_blocks(); block += blocks) {
    // Two and two rather than three and one: a narrow tile is slow.
    const int64_t rest = b.num_blocks() - block;
    blocks = std::min<int64_t>(rest == 4 ? 2 : kTileBlocks, std::min<int64_t>(rest, kTileBlocks));
    // While these blocks are used, the next ones are prefetched.
    const int64_t next = std::min<int64_t>(rest - blocks, kTileBlocks);
    const int64_t lines = (next * kBlock + tiles - 1) / tiles;
    const int64_t lines_of_tile = lines * ((b.rows() + kBlock - 1) / kBlock);
    const float* next_b = b.block(block + (next > 0 ? blocks : 0));
    for (int64_t i = 0, rows; i < m; i += rows, next_b += lines_of_tile * kBlock) {
      // A's columns are contiguous only within a block.
      rows =
          std::min<int64_t>(kTileRows, kTransposed ? std::min(m - i, kBlock - i % kBlock) : m - i);
      const Operands p{
          .k = b.rows(),
          .a = kTransposed ? a.block(i / kBlock) + i % kBlock : a.block(0) + i * kBlock,
          .a_block = a.block_stride(),
          .b = b.block(block),
          .b_block = b.block_stride(),
          .next_b = next_b,
          .next_b_lines = static_cast<int>(lines)};
      Results r = results;
      MoveDown(i, &r);
      r.first_block = block;
      RowsOf<Lanes, kTransposed>(rows, blocks, p, r);
    }
  }
}

void Product(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
             BlockedMatrix* c) {
  const Results r = ResultsOf(options, c);
  if (b.layout() == RightOperand::Layout::kFloat32)
    return AllTiles<FloatLanes, false>(a, b.lanes(), r);
  const FlushDenormals flush;
#if HWY_TARGET == HWY_AVX3
  if (b.layout() == RightOperand::Layout::kPairs)
    return AllTiles<BFloat16Pairs, false>(a, b.lanes(), r);
#endif
  BlockedMatrix& widened = Scratch::OfThisThread().a;
  WidenColumns(a, &widened);
  AllTiles<FloatLanes, false>(widened, b.lanes(), r);
}

// A and B are in lanes.
template <class Lanes>
void TransposedLanes(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c) {
  AllTiles<Lanes, true>(a, b, RowMajorResults(b.columns(), c));
  if (sums == nullptr) return;
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < a.columns(); column += lanes) {
    const float* values = a.block(column / kBlock) + column % kBlock;
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < a.rows(); ++k)
      sum = Lanes::MulAdd(Lanes::One(), hn::Load(d, values + k * kBlock), sum);
    StoreFirst(sum, d, sums + column, a.columns() - column);
  }
}

void TransposedProduct(const BlockedMatrix& a, const BlockedMatrix& b, bool pairs, float* sums,
                       float* c) {
  if (a.precision() == Precision::kFloat32) return TransposedLanes<FloatLanes>(a, b, sums, c);
  const FlushDenormals flush;
  Scratch& scratch = Scratch::OfThisThread();
#if HWY_TARGET == HWY_AVX3
  if (pairs) {
    PairRows(a, 1, &scratch.a);
    PairRows(b, 1, &scratch.b);
    return TransposedLanes<BFloat16Pairs>(scratch.a, scratch.b, sums, c);
  }
#endif
  CHECK(!pairs);
  WidenRows(a, &scratch.a);
  WidenRows(b, &scratch.b);
  TransposedLanes<FloatLanes>(scratch.a, scratch.b, sums, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Product);
HWY_EXPORT(TransposedProduct);

void Gemm(const BlockedMatrix& a, const RightOperand& b, const GemmOptions& options,
          BlockedMatrix* c) {
  CHECK(a.columns() == b.rows() && c->rows() == a.rows() && c->columns() == b.columns());
  CHECK(a.precision() == b.precision());
  CHECK(options.mask == nullptr || options.mask->precision() == c->precision());
  if (b.layout() == RightOperand::Layout::kTiles) return GemmInTiles(a, b, options, c);
  HWY_DYNAMIC_DISPATCH(Product)(a, b, options, c);
}

void TransposedGemm(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c) {
  CHECK(a.rows() == b.rows() && a.precision() == b.precision());
  const BFloat16Products products = BFloat16ProductsOfIsa();
  if (a.precision() == Precision::kBFloat16 && products == BFloat16Products::kTiles)
    return TransposedGemmInTiles(a, b, sums, c);
  HWY_DYNAMIC_DISPATCH(TransposedProduct)
  (a, b, products == BFloat16Products::kPairs, sums, c);
}

}  // namespace renzan
#endif
