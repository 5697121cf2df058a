#pragma once

// A model that contains a NaN or an infinity is unusable and must not be saved or scored. A worker
// sees only its own samples and tables, so each records the first step after which its part was not
// finite, and all workers compare before anything is saved or reported.

#include <cstdint>
#include <limits>
#include <span>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"

namespace renzan {

// Plain data: the findings of one worker, or of all.
struct Finiteness {
  static constexpr int64_t kNoStep = std::numeric_limits<int64_t>::max();
  int64_t bad_step = kNoStep;  // the first step (from 1) with a NaN or an infinity
  // Where: in the predictions before that step's update, or in parameters and states after it.
  bool predictions = false, dense = false, tables = false;

  bool ok() const { return bad_step == kNoStep; }
};

// The earliest bad step and everything that was not finite in it; independent of placement.
Finiteness Merge(std::span<const Finiteness> workers);

// Training has diverged (kSoftware).
struct DivergedError : Error {
  using Error::Error;
};

// Throws DivergedError with advice unless everything is finite.
void FailUnlessFinite(const Finiteness& all);

// Compares with the other workers, and throws DivergedError on all of them if any has seen a NaN or
// an infinity. Every rank makes the same calls.
void CheckFinite(Communicator& comm, const Finiteness& mine);

}  // namespace renzan
