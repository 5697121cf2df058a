#include "renzan/nn/gradient_tiles.h"

#include <algorithm>

#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/from_avx2.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/gradient_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/nn/gemm_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void SetOperands(const BlockedMatrix& a, const BlockedMatrix& b, BlockedMatrix* left,
                 BlockedMatrix* right, float* sums) {
  const FlushDenormals flush;
  TransposeRows(a, left, sums);
  PairRows(b, kBlock, right);
}

// The sum of the vectors at p, p + stride, ... by a balanced binary tree.
template <int kLeaves>
HWY_INLINE hn::Vec<Tag> TreeSum(const float* p, int64_t stride) {
  if constexpr (kLeaves == 1) {
    return hn::Load(Tag(), p);
  } else {
    return hn::Add(TreeSum<kLeaves / 2>(p, stride),
                   TreeSum<kLeaves / 2>(p + kLeaves / 2 * stride, stride));
  }
}

HWY_INLINE hn::Vec<Tag> TreeSum(int64_t leaves, const float* p, int64_t stride) {
  switch (leaves) {
    case 1:
      return TreeSum<1>(p, stride);
    case 2:
      return TreeSum<2>(p, stride);
    case 4:
      return TreeSum<4>(p, stride);
    default:
      return TreeSum<8>(p, stride);
  }
}

// The rows of C from the leaves' rows [rows, row], which are overwritten.
void AddLeaves(float* products, int64_t leaves, int64_t stride, int64_t rows, int64_t row,
               int64_t columns, float* c, int64_t c_row) {
  const Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // More than eight: subtrees of eight first.
  for (; leaves > 8; leaves /= 8, stride *= 8)
    for (int64_t leaf = 0; leaf < leaves; leaf += 8)
      for (int64_t i = 0; i < rows * row; i += lanes) {
        float* const p = products + leaf * stride + i;
        hn::Store(TreeSum(std::min<int64_t>(8, leaves - leaf), p, stride), d, p);
      }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t column = 0; column < columns; column += lanes)
      StoreFirst(TreeSum(leaves, products + i * row + column, stride), d, c + i * c_row + column,
                 columns - column);
}

// This thread's array for products; initially zero.
float* ProductsOfThisThread(size_t size) {
  thread_local AlignedBuffer products;
  if (products.size() < size) products = AlignedBuffer(size);
  return products.data();
}

// Up to 32 rows of one leaf's product, to c [rows, c_row].
template <class Tiles>
void RowsOfProduct(const GradientOperands& leaf, const GradientBlock& part, const float* next,
                   float* c, int64_t c_row) {
  const BlockedMatrix& b = leaf.right;
  const Results all{.c = c, .c_row = c_row, .c_block = kBlock, .columns = part.blocks * kBlock};
  Unfinished unfinished;
  // The rows of A that are multiplied next, 32 lines of each block, are prefetched meanwhile.
  const int64_t tiles = (part.blocks + 1) / 2, lines = (2 * kBlock + tiles - 1) / tiles;
  Operands p{.k = b.rows(),
             .a = leaf.left.block(0) + part.row * kBlock,
             .a_block = leaf.left.block_stride(),
             .b_block = b.block_stride(),
             .next = next,
             .next_lines = next == nullptr ? 0 : lines,
             .next_step = leaf.left.block_stride()};
  for (int64_t i = 0; i < part.blocks; i += 2) {
    p.b = b.block(part.block + i);
    Results r = all;
    r.first_block = i;
    AnyTile<Tiles>(part.rows, i + 1 < part.blocks, p, r, &unfinished);
    p.next += p.next_lines * kBlock;
  }
}

template <class Tiles>
void SumInTiles(std::span<const GradientOperands* const> leaves, const GradientBlock& part,
                float* c) {
  constexpr int64_t kRows = 2 * kBlock;
  const int64_t in = leaves[0]->right.columns(), num = std::ssize(leaves);
  // An odd number of cache lines apart, so that rows do not compete for a few sets of the cache.
  const int64_t row = (part.blocks | 1) * kBlock, stride = kRows * row;
  float* const products = ProductsOfThisThread(static_cast<size_t>(num * stride));
  for (int64_t i = 0, rows; i < part.rows; i += rows) {
    rows = std::min(kRows, part.rows - i);
    {
      const FlushDenormals flush;
      if (i == 0 || rows < kRows) Tiles::Configure(ShapeFor(rows));
      for (int64_t leaf = 0; leaf < num; ++leaf) {
        const bool is_last = leaf + 1 == num;
        const int64_t next_row = part.row + i + (is_last ? kRows : 0);
        const BlockedMatrix& next = leaves[static_cast<size_t>(is_last ? 0 : leaf + 1)]->left;
        RowsOfProduct<Tiles>(*leaves[static_cast<size_t>(leaf)],
                             {part.row + i, rows, part.block, part.blocks},
                             next_row < next.rows() ? next.block(0) + next_row * kBlock : nullptr,
                             products + leaf * stride, row);
      }
    }
    AddLeaves(products, num, stride, rows, row,
              std::min(part.blocks * kBlock, in - part.block * kBlock),
              c + (part.row + i) * in + part.block * kBlock, in);
  }
  Tiles::Release();
}

void Sum(std::span<const GradientOperands* const> leaves, const GradientBlock& part, float* c) {
#if HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX3
  if (HasTileRegisters()) return SumInTiles<HardwareTiles>(leaves, part, c);
#endif
  SumInTiles<EmulatedTiles>(leaves, part, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(SetOperands);
HWY_EXPORT(Sum);

void GradientOperands::Reserve(int64_t k, int64_t m, int64_t n) {
  const int64_t padded = (k + 31) / 32 * 32;
  left.Reshape(m, padded, Precision::kBFloat16);
  right.Reshape(padded / 2, n);
  sums = AlignedBuffer(static_cast<size_t>(m));
}

void GradientOperands::Set(const BlockedMatrix& a, const BlockedMatrix& b, bool with_sums) {
  HWY_DYNAMIC_DISPATCH(SetOperands)(a, b, &left, &right, with_sums ? sums.data() : nullptr);
}

int64_t CachedGradientBlocks(int64_t leaves, int64_t k) {
  constexpr int64_t kCached = 1 << 20;  // half of a second-level cache of 2 MiB
  const int64_t of_block = 2 * BlockedMatrix::kLanes * k * leaves;
  return std::max<int64_t>(2, kCached / of_block / 2 * 2);
}

void SumOfTransposedGemms(std::span<const GradientOperands* const> leaves,
                          const GradientBlock& part, float* c) {
  HWY_DYNAMIC_DISPATCH(Sum)(leaves, part, c);
}

}  // namespace renzan
#endif
