#include "renzan/model/dot_interaction_tiles.h"

#include <algorithm>

#include "renzan/nn/from_avx2.h"
#include "renzan/nn/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/model/dot_interaction_tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "renzan/model/dot_interaction_operands-inl.h"
#include "renzan/model/dot_interaction_parts-inl.h"
#include "renzan/nn/tile_registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Tiles, class Rounding>
struct ForwardPass : Samples {
  BlockedMatrix* out;

  // B is two tiles of pairs along k, side by side. A is read in place if vectors have whole lines.
  HWY_NOINLINE void Operands(int64_t s, int64_t part) const {
    const float* x = Sample(s);
    const TileScratch::Slot& slot = SlotOf(s, part);
    const int64_t vectors = f;
    for (int64_t h = 0; h < halves_of_part(); ++h) {
      const int64_t* half = Half(part, h);
      if (HasWholeLines())
        for (int64_t i = h; i < vectors; i += 2) PrefetchNext(x + half[i]);
      float* b = slot.b + h * kHalf * kLine;
      TransposeHalves(x, half, b);
      if (vectors > kLine) TransposeHalves(x, half + kLine, b + kTile);
      if (HasWholeLines()) continue;
      for (int64_t i = 0; i < vectors; ++i) CopyHalf(x + half[i], slot.a + i * kLine);
    }
  }

  // The lower triangle, in rows of two lines. Registers 0 to 2 are C; 3 and 4 are A, one above the
  // other; 5 and 6 are B, side by side.
  template <bool kTwo>
  HWY_INLINE void Multiply(int64_t s, int64_t part) const {
    const Flush<Tiles> flush;
    const TileScratch::Slot& slot = SlotOf(s, part);
    const float* a = HasWholeLines() ? Sample(s) + part * features.block_stride() : slot.a;
    const int64_t a_row = HasWholeLines() ? parts() * features.block_stride() : kLine;
    if (part == 0) {
      Tiles::template Zero<0>();
      if (kTwo) Tiles::template Zero<1>();
      if (kTwo) Tiles::template Zero<2>();
    }
    Tiles::template Load<3>(a, a_row);
    Tiles::template Load<5>(slot.b, kLine);
    Tiles::template MultiplyAdd<0, 3, 5>();
    if (!kTwo) return;
    Tiles::template Load<4>(a + kLine * a_row, a_row);
    Tiles::template Load<6>(slot.b + kTile, kLine);
    Tiles::template MultiplyAdd<1, 4, 5>();
    Tiles::template MultiplyAdd<2, 4, 6>();
  }
  template <bool kTwo>
  HWY_INLINE void Store(int64_t s) const {
    float* c = SlotOf(s).c;
    Tiles::template Store<0>(c, 2 * kLine);
    if (kTwo) Tiles::template Store<1>(c + 2 * kTile, 2 * kLine);
    if (kTwo) Tiles::template Store<2>(c + 2 * kTile + kLine, 2 * kLine);
  }
  HWY_NOINLINE void Products(int64_t s, int64_t part) const {
    f > kLine ? Multiply<true>(s, part) : Multiply<false>(s, part);
  }
  HWY_NOINLINE void EndProducts(int64_t s) const { f > kLine ? Store<true>(s) : Store<false>(s); }

  // Writes whole halves and lines: the next row overwrites what a row writes behind its end, and
  // zeros fill up the last line.
  HWY_NOINLINE void Round(int64_t s) const {
    float* row = SlotOf(s).row;
    for (int64_t h = 0; h * 2 * kHalf < dim; ++h)
      CopyHalf(Sample(s) + *scratch.half(h), row + h * kHalf);
    BFloat16Bits* to = Bits(row) + dim;
    const float* c = SlotOf(s).c + 2 * kLine;
    const int64_t vectors = f;
    int64_t i = 1;
    for (; i < std::min(vectors, kLine + 1); to += i++, c += 2 * kLine) Rounding::Half(c, to);
    for (; i < vectors; to += i++, c += 2 * kLine) Rounding::Line(c, c + kLine, to);
    std::fill_n(to, 2 * kLine, BFloat16Bits{0});
  }

  HWY_NOINLINE void Write(int64_t s) const {
    const float* from = SlotOf(s).row;
    float* to = out->data() + s * kLine;
    const int64_t stride = out->block_stride();
    for (int64_t block = out->num_blocks(); block > 0; --block, from += kLine, to += stride) {
      if (HasWholeLines()) PrefetchNext(to);
      CopyLine(from, to);
    }
  }

  void Run() const {
    const int upper = UpperRows(f), lower = LowerRows(f);
    Tiles::Configure({{upper, lower, lower, upper, lower, kLine, kLine, kLine}});
    const auto last = [this](int64_t part) { return part + 1 == parts(); };
    ForEachPart(
        features.rows(), parts(),
        [&](int64_t s, int64_t part) HWY_ATTR {
          if (last(part)) Write(s);
        },
        [&](int64_t s, int64_t part) HWY_ATTR {
          if (last(part)) Round(s);
        },
        [&](int64_t s, int64_t part) HWY_ATTR {
          if (last(part)) EndProducts(s);
        },
        [&](int64_t s, int64_t part) HWY_ATTR { Products(s, part); },
        [&](int64_t s, int64_t part) HWY_ATTR { Operands(s, part); });
    Tiles::Release();
  }
};

template <class Tiles, class Rounding>
struct BackwardPass : Samples {
  const BlockedMatrix& d_out;
  BlockedMatrix* d_features;

  HWY_NOINLINE void Read(int64_t s) const {
    float* to = SlotOf(s).row;
    const float* from = d_out.data() + s * kLine;
    const int64_t stride = d_out.block_stride();
    for (int64_t block = d_out.num_blocks(); block > 0; --block, from += stride, to += kLine) {
      if (HasWholeLines()) PrefetchNext(from);
      CopyLine(from, to);
    }
  }

  // A is the gradient of the products.
  HWY_NOINLINE void Pairs(int64_t s) const {
    const TileScratch::Slot& slot = SlotOf(s);
    PairTriangle(Bits(slot.row) + dim, f, slot.pairs);
  }
  HWY_NOINLINE void Left(int64_t s) const {
    const TileScratch::Slot& slot = SlotOf(s);
    UnpackTriangle(Bits(slot.row) + dim, slot.pairs, f, slot.a);
  }

  // B is one tile of pairs of vectors for each half.
  HWY_NOINLINE void Right(int64_t s, int64_t part) const {
    const float* x = Sample(s);
    const int64_t* half = Half(part, 0);
    float* b = SlotOf(s, part).b;
    const int64_t vectors = f;
    for (int64_t i = 0; i < vectors; i += 2, b += kLine) {
      const float* low = x + half[i];
      const float* high = i + 1 < vectors ? x + half[i + 1] : nullptr;
      if (HasWholeLines()) {
        PrefetchNext(low);
        if (high != nullptr) PrefetchNext(high);
        PairLines(low, high, b);
      } else {
        PairHalves(low, high, b);
      }
    }
  }

  // Registers 0 to 3 are C, two for each half, one above the other; 4 and 5 are A; 6 and 7 are B.
  template <bool kTwo>
  HWY_INLINE void Multiply(int64_t s, int64_t part) const {
    const Flush<Tiles> flush;
    if (part == 0) {
      const float* a = SlotOf(s).a;
      Tiles::template Load<4>(a, kLine);
      if (kTwo) Tiles::template Load<5>(a + kTile, kLine);
    }
    const float* b = SlotOf(s, part).b;
    Tiles::template Load<6>(b, kLine);
    Tiles::template Zero<0>();
    Tiles::template MultiplyAdd<0, 4, 6>();
    if (kTwo) Tiles::template Zero<1>();
    if (kTwo) Tiles::template MultiplyAdd<1, 5, 6>();
    if (halves_of_part() == 1) return;
    Tiles::template Load<7>(b + kTile, kLine);
    Tiles::template Zero<2>();
    Tiles::template MultiplyAdd<2, 4, 7>();
    if (kTwo) Tiles::template Zero<3>();
    if (kTwo) Tiles::template MultiplyAdd<3, 5, 7>();
  }
  template <bool kTwo>
  HWY_INLINE void Store(int64_t s, int64_t part) const {
    float* c = SlotOf(s, part).c;
    Tiles::template Store<0>(c, kLine);
    if (kTwo) Tiles::template Store<1>(c + kTile, kLine);
    if (halves_of_part() == 1) return;
    Tiles::template Store<2>(c + 2 * kTile, kLine);
    if (kTwo) Tiles::template Store<3>(c + 3 * kTile, kLine);
  }
  HWY_NOINLINE void Products(int64_t s, int64_t part) const {
    f > kLine ? Multiply<true>(s, part) : Multiply<false>(s, part);
  }
  HWY_NOINLINE void EndProducts(int64_t s, int64_t part) const {
    f > kLine ? Store<true>(s, part) : Store<false>(s, part);
  }

  HWY_NOINLINE void Round(int64_t s, int64_t part) const {
    const float* c = SlotOf(s, part).c;
    float* to = d_features->block(part) + s * kLine;
    const int64_t step = parts() * d_features->block_stride();
    const int64_t* sums = scratch.sums.data();
    for (const int64_t* end = sums + scratch.sums.size(); sums < end; sums += 2, to += step) {
      if (HasWholeLines()) PrefetchNext(to);
      Rounding::Line(c + sums[0], c + sums[1], Bits(to));
    }
    // Adds vector 0's own gradient. The sum may be denormal.
    const Tag d;
    for (int64_t h = 0; h < halves_of_part(); ++h) {
      // Where it is, in all three matrices.
      const int64_t half = s * kLine + *Half(part, h);
      for (int64_t i = 0; i < kLine; i += static_cast<int64_t>(hn::Lanes(d))) {
        const auto sum = hn::Add(hn::Load(d, c + 2 * h * kTile + i),
                                 LoadBFloat16(d, Bits(d_out.data() + half) + i));
        StoreBFloat16(sum, d, Bits(d_features->data() + half) + i);
      }
    }
  }

  void Run() const {
    const int upper = UpperRows(f), lower = LowerRows(f);
    Tiles::Configure({{upper, lower, upper, lower, upper, lower, kLine, kLine}});
    ForEachPart(
        features.rows(), parts(), [&](int64_t s, int64_t part) HWY_ATTR { Round(s, part); },
        [&](int64_t s, int64_t part) HWY_ATTR { EndProducts(s, part); },
        [&](int64_t s, int64_t part) HWY_ATTR { Products(s, part); },
        [&](int64_t s, int64_t part) HWY_ATTR {
          if (part == 0) Left(s);
          Right(s, part);
        },
        [&](int64_t s, int64_t part) HWY_ATTR {
          if (part == 0) Pairs(s);
        },
        [&](int64_t s, int64_t part) HWY_ATTR {
          if (part == 0) Read(s);
        });
    Tiles::Release();
  }
};

Samples SamplesOf(const BlockedMatrix& features, int64_t f, int64_t dim) {
  return {features, f, dim, TileScratch::OfThisThread(f, dim, features.block_stride())};
}

void ForwardInTiles(const BlockedMatrix& features, int64_t f, int64_t dim, bool hardware,
                    BlockedMatrix* out) {
  const Samples samples = SamplesOf(features, f, dim);
#if HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX3
  if (hardware) return ForwardPass<HardwareTiles, HardwareRounding>{samples, out}.Run();
#endif
  (void)hardware;
  ForwardPass<EmulatedTiles, SoftwareRounding>{samples, out}.Run();
}

void BackwardInTiles(const BlockedMatrix& features, const BlockedMatrix& d_out, int64_t f,
                     int64_t dim, bool hardware, BlockedMatrix* d_features) {
  const Samples samples = SamplesOf(features, f, dim);
#if HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX3
  if (hardware)
    return BackwardPass<HardwareTiles, HardwareRounding>{samples, d_out, d_features}.Run();
#endif
  (void)hardware;
  BackwardPass<EmulatedTiles, SoftwareRounding>{samples, d_out, d_features}.Run();
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(ForwardInTiles);
HWY_EXPORT(BackwardInTiles);

void DotInteractionForwardInTiles(const BlockedMatrix& features, int64_t f, int64_t dim,
                                  BlockedMatrix* out) {
  HWY_DYNAMIC_DISPATCH(ForwardInTiles)(features, f, dim, HasTileRegisters(), out);
}

void DotInteractionBackwardInTiles(const BlockedMatrix& features, const BlockedMatrix& d_out,
                                   int64_t f, int64_t dim, BlockedMatrix* d_features) {
  HWY_DYNAMIC_DISPATCH(BackwardInTiles)(features, d_out, f, dim, HasTileRegisters(), d_features);
}

}  // namespace renzan
#endif
