#pragma once

// The order of a bag's lookups: by row block, then in the sample's order.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/plan/table_spec.h"

namespace renzan {

// Calls visit(at) for the positions [begin, end) in `ids` of one bag. `scratch` is overwritten.
template <class Visit>
void ForEachByBlock(const TableSpec& table, std::span<const int64_t> ids, int32_t begin,
                    int32_t end, std::vector<uint64_t>* scratch, const Visit& visit) {
  const int64_t mask = table.row_blocks - 1;
  scratch->clear();
  for (int32_t at = begin; at < end; ++at)
    scratch->push_back(static_cast<uint64_t>(ids[static_cast<size_t>(at)] & mask) << 32 |
                       static_cast<uint32_t>(at));
  std::sort(scratch->begin(), scratch->end());
  for (const uint64_t key : *scratch) visit(static_cast<uint32_t>(key));
}

}  // namespace renzan
