#pragma once

// A stable radix sort of lookups by row. Since lookups are listed in (sample, position in bag)
// order, a stable sort by row alone yields the order (row, sample, position) of the deterministic
// sparse update.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace renzan {

// The row in the upper 32 bits, the sample's bag in the lower; where lookups have weights, instead
// of the bag which of all lookups it is.
using Lookup = uint64_t;
inline Lookup MakeLookup(uint32_t row, uint32_t sample) { return uint64_t{row} << 32 | sample; }
inline uint32_t RowOf(Lookup lookup) { return static_cast<uint32_t>(lookup >> 32); }
inline uint32_t SampleOf(Lookup lookup) { return static_cast<uint32_t>(lookup); }

// `scratch` is resized. Rows must be below `num_rows`, which limits the number of passes.
void SortByRow(std::vector<Lookup>* lookups, std::vector<Lookup>* scratch, int64_t num_rows);

}  // namespace renzan
