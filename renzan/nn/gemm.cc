#include "renzan/nn/gemm.h"

#include <algorithm>

#include "renzan/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// The loops over a tile's registers must be unrolled before the compiler assigns registers.
#undef RENZAN_UNROLL
#define RENZAN_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A row of a block is one to four registers.
using Tag = hn::CappedTag<float, BlockedMatrix::kBlock>;
constexpr int64_t kBlock = BlockedMatrix::kBlock;
constexpr int kParts = kBlock / static_cast<int>(hn::MaxLanes(Tag()));

// A tile of C has this many rows and blocks: 24 of AVX-512's 32 registers, 12 of AVX2's 16, 8 of
// SSE4's 16, 16 of NEON's 32.
constexpr int kTileRows = kParts == 1 ? 8 : kParts == 2 ? 6 : HWY_TARGET == HWY_SSE4 ? 2 : 4;
constexpr int kTileBlocks = kParts == 1 ? 3 : 1;

// A tile's operands. Element (i, k) of A is at a[i·16 + k] within a block of 16 k, which are
// a_block apart; of Aᵀ at a[k·16 + i]. Element (k, j) of B is at b[k·16 + j] within a block of
// columns.
struct Operands {
  int64_t k;
  const float* a;
  int64_t a_block;
  const float* b;
  int64_t b_block;
  // Prefetched meanwhile: this many cache lines for every 16 k.
  const float* next_b;
  int next_b_lines;
};

// Where the results go, and GemmOptions for the tile.
struct Results {
  float* c;  // element (i, j) is at c[i·c_row + j] within a block
  int64_t c_row, c_block;
  int64_t columns;  // as many exist from the tile's first one on
  const float* bias = nullptr;
  bool accumulate = false, relu = false;
  const float* mask = nullptr;
  int64_t mask_block = 0;
  float mask_scale = 1.0f;
};

HWY_INLINE void Prefetch(const float* p) { __builtin_prefetch(p); }

// The first n values at p, followed by zeros.
HWY_NOINLINE hn::Vec<Tag> LoadPart(Tag d, const float* p, int64_t n) {
  HWY_ALIGN float padded[kBlock] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = p[i];
  return hn::Load(d, padded);
}

// The first n values of v.
HWY_NOINLINE void StorePart(hn::Vec<Tag> v, Tag d, float* p, int64_t n) {
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

template <bool kTransposed, int kRows, int kBlocks>
HWY_NOINLINE void Tile(const Operands& p, const Results& r) {
  constexpr int kVectors = kBlocks * kParts;
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Of vector j: its block, and its first column in the block and in the tile.
  const auto block = [](int j) { return j / kParts; };
  const auto lane = [lanes](int j) { return j % kParts * lanes; };
  const auto column = [&](int j) { return block(j) * kBlock + lane(j); };
  const auto at_c = [&](int i, int j) {
    return r.c + i * r.c_row + block(j) * r.c_block + lane(j);
  };
  const auto at_mask = [&](int i, int j) {
    return r.mask + i * kBlock + block(j) * r.mask_block + lane(j);
  };

  hn::Vec<Tag> sum[kRows][kVectors];
  RENZAN_UNROLL for (int j = 0; j < kVectors; ++j) {
    const auto bias =
        r.bias == nullptr ? hn::Zero(d) : LoadFirst(d, r.bias + column(j), r.columns - column(j));
    RENZAN_UNROLL for (int i = 0; i < kRows; ++i) {
      sum[i][j] = r.accumulate ? hn::LoadU(d, at_c(i, j)) : bias;
      Prefetch(at_c(i, j));
      if (r.mask != nullptr) Prefetch(at_mask(i, j));
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
            hn::MulAdd(x, right[j], sum[i][j]);
      }
      left += kTransposed ? kBlock : 1;
    };
    const int64_t count = std::min(kBlock, p.k - k0);
    if (count == kBlock && kRows == kTileRows && kParts <= 2) {
      // Unrolled, for the loop's own instructions would cost 6 % of a step.
      RENZAN_UNROLL for (int k = 0; k < kBlock; ++k) add_one_k();
    } else {
      for (int64_t k = 0; k < count; ++k) add_one_k();
    }
    a = kTransposed ? left : a + p.a_block;
  }
  RENZAN_UNROLL for (int i = 0; i < kRows; ++i) {
    RENZAN_UNROLL for (int j = 0; j < kVectors; ++j) {
      auto y = sum[i][j];
      if (r.relu) y = hn::IfThenZeroElse(hn::Lt(y, hn::Zero(d)), y);
      if (r.mask != nullptr)
        y = hn::IfThenElseZero(hn::Gt(hn::Load(d, at_mask(i, j)), hn::Zero(d)),
                               hn::Mul(y, hn::Set(d, r.mask_scale)));
      StoreFirst(y, d, at_c(i, j), r.columns - column(j));
    }
  }
}

// A tile of whole height and `blocks` blocks.
template <bool kTransposed>
HWY_INLINE void WholeTile(int64_t blocks, const Operands& p, const Results& r) {
  constexpr int kTwo = std::min(2, kTileBlocks);
  if (blocks == kTileBlocks) {
    Tile<kTransposed, kTileRows, kTileBlocks>(p, r);
  } else if (blocks == kTwo) {
    Tile<kTransposed, kTileRows, kTwo>(p, r);
  } else {
    Tile<kTransposed, kTileRows, 1>(p, r);
  }
}

// The last rows of a block.
template <bool kTransposed>
HWY_INLINE void FewRows(int64_t rows, Operands p, Results r) {
  while (rows > 0) {
    const int64_t now = rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    if (now == 4) {
      Tile<kTransposed, 4, 1>(p, r);
    } else if (now == 2) {
      Tile<kTransposed, 2, 1>(p, r);
    } else {
      Tile<kTransposed, 1, 1>(p, r);
    }
    rows -= now;
    p.a += now * (kTransposed ? 1 : kBlock);
    r.c += now * r.c_row;
    if (r.mask != nullptr) r.mask += now * kBlock;
  }
}

// Up to kTileRows rows of a few blocks of columns.
template <bool kTransposed>
HWY_INLINE void RowsOf(int64_t rows, int64_t blocks, Operands p, Results r) {
  if (rows == kTileRows) return WholeTile<kTransposed>(blocks, p, r);
  for (int64_t block = 0; block < blocks; ++block) {
    FewRows<kTransposed>(rows, p, r);
    p.b += p.b_block;
    r.c += r.c_block;
    r.columns -= kBlock;
    if (r.bias != nullptr) r.bias += kBlock;
    if (r.mask != nullptr) r.mask += r.mask_block;
  }
}

// `results` has the whole result's addresses.
template <bool kTransposed>
HWY_INLINE void AllTiles(const BlockedMatrix& a, const BlockedMatrix& b, const Results& results) {
  const int64_t m = kTransposed ? a.columns() : a.rows();
  const int64_t tiles = std::max<int64_t>(1, (m + kTileRows - 1) / kTileRows);
  for (int64_t block = 0, blocks; block < b.num_blocks(); block += blocks) {
    // Two times two rather than three and one: a narrow tile is slow.
    const int64_t rest = b.num_blocks() - block;
    blocks = std::min<int64_t>(rest == 4 ? 2 : kTileBlocks, std::min<int64_t>(rest, kTileBlocks));
    // While these blocks are used, the next ones come into the cache.
    const int64_t next = std::min<int64_t>(rest - blocks, kTileBlocks);
    const int64_t lines = (next * kBlock + tiles - 1) / tiles;
    const int64_t lines_of_tile = lines * ((b.rows() + kBlock - 1) / kBlock);
    const float* next_b = b.block(block + (next > 0 ? blocks : 0));
    for (int64_t i = 0, rows; i < m; i += rows, next_b += lines_of_tile * kBlock) {
      // A's columns are contiguous only within their block.
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
      r.c += i * r.c_row + block * r.c_block;
      r.columns -= block * kBlock;
      if (r.bias != nullptr) r.bias += block * kBlock;
      if (r.mask != nullptr) r.mask += i * kBlock + block * r.mask_block;
      RowsOf<kTransposed>(rows, blocks, p, r);
    }
  }
}

void Product(const BlockedMatrix& a, const BlockedMatrix& b, const GemmOptions& options,
             BlockedMatrix* c) {
  Results r{.c = c->data(),
            .c_row = kBlock,
            .c_block = c->block_stride(),
            .columns = c->columns(),
            .bias = options.bias,
            .accumulate = options.accumulate,
            .relu = options.relu};
  if (options.mask != nullptr) {
    r.mask = options.mask->data();
    r.mask_block = options.mask->block_stride();
    r.mask_scale = options.mask_scale;
  }
  AllTiles<false>(a, b, r);
}

void TransposedProduct(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c) {
  AllTiles<true>(a, b,
                 Results{.c = c, .c_row = b.columns(), .c_block = kBlock, .columns = b.columns()});
  if (sums == nullptr) return;
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t column = 0; column < a.columns(); column += lanes) {
    const float* values = a.block(column / kBlock) + column % kBlock;
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < a.rows(); ++k) sum = hn::Add(sum, hn::Load(d, values + k * kBlock));
    StoreFirst(sum, d, sums + column, a.columns() - column);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Product);
HWY_EXPORT(TransposedProduct);

void Gemm(const BlockedMatrix& a, const BlockedMatrix& b, const GemmOptions& options,
          BlockedMatrix* c) {
  CHECK(a.columns() == b.rows() && c->rows() == a.rows() && c->columns() == b.columns());
  HWY_DYNAMIC_DISPATCH(Product)(a, b, options, c);
}

void TransposedGemm(const BlockedMatrix& a, const BlockedMatrix& b, float* sums, float* c) {
  CHECK(a.rows() == b.rows());
  HWY_DYNAMIC_DISPATCH(TransposedProduct)(a, b, sums, c);
}

}  // namespace renzan
#endif
