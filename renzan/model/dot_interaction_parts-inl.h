// How dot_interaction_tiles.cc goes through the samples.

#if defined(RENZAN_MODEL_DOT_INTERACTION_PARTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RENZAN_MODEL_DOT_INTERACTION_PARTS_INL_H_
#undef RENZAN_MODEL_DOT_INTERACTION_PARTS_INL_H_
#else
#define RENZAN_MODEL_DOT_INTERACTION_PARTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "renzan/model/dot_interaction_operands-inl.h"
#include "renzan/model/dot_interaction_tile_scratch.h"
#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/tile_registers-inl.h"
#include "renzan/tensor/blocked_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A row's lines are too far apart for the hardware prefetcher, so those of the next sample are
// prefetched into the second-level cache. Vectors of half a line make matrices so small that they
// are there anyway.
HWY_INLINE void PrefetchNext(const float* line) { __builtin_prefetch(line + kLine, 0, 2); }

constexpr int64_t kTile = kLine * kLine;  // lanes

// The hardware's tile products ignore the processor's floating-point settings.
struct Unchanged {
  Unchanged() {}
};
template <class Tiles>
using Flush =
    std::conditional_t<std::is_same_v<Tiles, EmulatedTiles>, const FlushDenormals, const Unchanged>;

// Calls stages(s, part)... for every part of every sample, the last stage first. In each round a
// stage is one part behind the stage before it, so that none waits for what another has just begun:
// tiles cannot be loaded soon after their lines were stored, and products have a long latency.
template <class... Stages>
HWY_INLINE void ForEachPart(int64_t samples, int64_t parts, const Stages&... last_to_first) {
  constexpr int kStages = sizeof...(last_to_first);
  struct Position {
    int64_t s, part;
  } at[kStages];  // of the first stage, the second one, ...
  for (Position& position : at) position = {-1, parts - 1};
  while (at[kStages - 1].s < samples) {
    for (int i = kStages - 1; i > 0; --i) at[i] = at[i - 1];
    if (++at[0].part == parts) at[0] = {at[0].s + 1, 0};
    int i = kStages;
    const auto run = [&](const auto& stage) HWY_ATTR {
      const Position now = at[--i];
      if (0 <= now.s && now.s < samples) stage(now.s, now.part);
    };
    (run(last_to_first), ...);
  }
}

HWY_INLINE void CopyHalf(const float* from, float* to) {
  const hn::CappedTag<float, kHalf> d;
  for (int64_t i = 0; i < kHalf; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(hn::LoadU(d, from + i), d, to + i);
}
HWY_INLINE void CopyLine(const float* from, float* to) {
  const Tag d;
  for (int64_t i = 0; i < kLine; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::Store(hn::Load(d, from + i), d, to + i);
}

// Rows of the upper and the lower of two tiles that hold f vectors. A register has at least one.
int UpperRows(int64_t f) { return static_cast<int>(std::min(f, kLine)); }
int LowerRows(int64_t f) { return static_cast<int>(std::max(f - kLine, int64_t{1})); }

// What both directions share. They work on one part of a sample at a time: a line of every vector
// (half a line if vectors are that short), so that all of it stays in the first-level cache.
struct Samples {
  const BlockedMatrix& features;
  int64_t f, dim;
  const TileScratch& scratch;

  bool HasWholeLines() const { return dim > 2 * kHalf; }
  int64_t parts() const { return HasWholeLines() ? dim / (2 * kLine) : 1; }
  int64_t halves_of_part() const { return HasWholeLines() ? 2 : 1; }
  const float* Sample(int64_t s) const { return features.data() + s * kLine; }
  // Where half h of a part begins within a sample, for each vector.
  const int64_t* Half(int64_t part, int64_t h) const {
    return scratch.half(part * halves_of_part() + h);
  }
  // The working memory of a part, and of a sample.
  const TileScratch::Slot& SlotOf(int64_t s, int64_t part) const {
    return scratch.slot(s * parts() + part);
  }
  const TileScratch::Slot& SlotOf(int64_t s) const { return scratch.slot(s); }
};

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#endif
