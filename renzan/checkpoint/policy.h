#pragma once

// Decides between full and incremental checkpoints. Pure functions of sizes and times.

#include <cstdint>

#include "renzan/checkpoint/manifest.h"

namespace renzan {

// The size of the next checkpoint, and of those since the last full one.
struct CheckpointCosts {
  bool has_base = false;           // whether there is a full checkpoint to build on
  uint64_t base_bytes = 0;         // of that one
  int64_t increments = 0;          // on it, so far
  uint64_t increment_bytes = 0;    // their sum
  uint64_t full_bytes = 0;         // the next checkpoint's, if full
  uint64_t incremental_bytes = 0;  // the next checkpoint's, if incremental
};

// The kind that needs the fewest bytes per checkpoint in the long run.
//
// A base of F bytes and k increments on it cost A(k) = (F + s1 + .. + sk) / (k + 1) each. One
// more lowers that average exactly where it is itself smaller: A(k+1) < A(k) <=> s(k+1) < A(k).
// Increments only grow, because they hold all rows changed since the base. Once one is larger than
// the average, all later ones are too, so A(k) was the minimum and a new base is due.
CheckpointKind NextKind(const CheckpointCosts& costs);

// The kind to write within `grace_seconds`: `planned` if it takes at most 70 % of that time, which
// leaves a margin for a slower disk, else the faster kind. A kind's estimate is infinite if it
// cannot be written (no base).
CheckpointKind KindForDeadline(CheckpointKind planned, double full_seconds,
                               double incremental_seconds, double grace_seconds);

}  // namespace renzan
