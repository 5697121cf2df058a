#pragma once

// Where pooled rows go: a sample's bags in matrices of a row for each sample.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/plan/table_spec.h"

namespace renzan {

// Of one bag of every sample.
struct BagPlace {
  size_t matrix = 0;
  int64_t column = 0;  // the first
};

// Those of a range of bags.
inline std::span<const BagPlace> OfRange(std::span<const BagPlace> places, IndexRange bags) {
  return places.subspan(static_cast<size_t>(bags.begin), static_cast<size_t>(bags.size()));
}

// All bags in one matrix, from a column on: one table after another, as in ShardMap::bags_of().
std::vector<BagPlace> SideBySide(std::span<const TableSpec> tables, int64_t first_column);

}  // namespace renzan
