#pragma once

// Full or incremental? Pure functions of sizes and times.

#include <cstdint>

#include "renzan/checkpoint/manifest.h"

namespace renzan {

// What the next checkpoint would cost, and what those since the last full one did.
struct CheckpointCosts {
  bool has_base = false;           // whether there is a full checkpoint to add to
  uint64_t base_bytes = 0;         // that one's
  int64_t increments = 0;          // over it, so far
  uint64_t increment_bytes = 0;    // their sum
  uint64_t full_bytes = 0;         // the next checkpoint's, if full
  uint64_t incremental_bytes = 0;  // the next checkpoint's, if incremental
};

// The kind that needs the fewest bytes per checkpoint in the long run.
//
// A base of F bytes and k increments over it cost A(k) = (F + s1 + .. + sk) / (k + 1) each. One
// more lowers that average exactly where it is itself smaller: A(k+1) < A(k) <=> s(k+1) < A(k).
// Increments only grow, because they hold all rows changed since the base, so once one is larger
// than the average, all later ones are, and A(k) was the minimum: it is time for a new base.
CheckpointKind NextKind(const CheckpointCosts& costs);

// The kind to write within `grace_seconds`: `planned` where that takes at most 70 % of them, which
// leaves room for a slower disk than before, else the faster one. A kind's estimate is infinite
// where it cannot be written (no base).
CheckpointKind KindForDeadline(CheckpointKind planned, double full_seconds,
                               double incremental_seconds, double grace_seconds);

}  // namespace renzan
