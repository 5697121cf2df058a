#pragma once

// Do these gangs all fit at the same time? A search used by the validator (invariants.h). It says
// no only after trying everything; after a maximum number of steps it answers "unknown".

#include <cstdint>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::check {

struct Gang {
  const Job* job;
  int workers;
};

enum class Packs { kYes, kNo, kUnknown };

// `free` has the free resources of each node of the snapshot, zero where nothing may start. Labels
// and required topology are respected. Tries first fit in the order of `gangs`, then other orders
// with backtracking; places workers on a node at most `max_steps` times in total.
Packs PackTogether(const Snapshot& snapshot, const std::vector<Resources>& free,
                   const std::vector<Gang>& gangs, int64_t max_steps = 200'000);

}  // namespace renzan::cluster::check
