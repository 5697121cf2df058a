#pragma once

// A model with a NaN or an infinity in it is lost: nothing of it may be saved or scored. A worker
// sees only its own samples and tables, so each remembers the first step that left something of
// its part not finite, and all compare before anything is saved or reported.

#include <cstdint>
#include <limits>
#include <span>

#include "renzan/comm/communicator.h"

namespace renzan {

// Plain data; what one worker, or all of them, have seen.
struct Finiteness {
  static constexpr int64_t kNoStep = std::numeric_limits<int64_t>::max();
  int64_t bad_step = kNoStep;  // the first step (from 1) that met or left a NaN or an infinity
  // What it was, in that step: predictions before its update, parameters and states after it.
  bool predictions = false, dense = false, tables = false;

  bool ok() const { return bad_step == kNoStep; }
};

// The earliest step of all, and everything that was wrong in it: the same on any placement.
Finiteness Merge(std::span<const Finiteness> workers);

// Throws kSoftware with advice, unless all is finite.
void FailUnlessFinite(const Finiteness& all);

// Compares with the other workers and throws kSoftware on all of them if any has seen a NaN or an
// infinity. Every rank makes the same calls.
void CheckFinite(Communicator& comm, const Finiteness& mine);

}  // namespace renzan
