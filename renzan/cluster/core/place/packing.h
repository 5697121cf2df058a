#pragma once

// Do these gangs all fit at the same time? A search for the checks of invariants.h: it answers no
// only when it has tried everything, and gives up after a number of steps instead of guessing.

#include <cstdint>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::check {

struct Gang {
  const Job* job;
  int workers;
};

enum class Packs { kYes, kNo, kUnknown };

// `free` is the room on each node of the snapshot, zero where nothing may stand. Labels and
// required topology are kept. Tries first-fit in the order of `gangs` and, if that fails, other
// orders and their alternatives, at most `max_steps` placements of workers on a node altogether.
Packs PackTogether(const Snapshot& snapshot, const std::vector<Resources>& free,
                   const std::vector<Gang>& gangs, int64_t max_steps = 200'000);

}  // namespace renzan::cluster::check
