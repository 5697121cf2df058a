#include "renzan/embedding/sort_rows.h"

#include <array>

namespace renzan {

void SortByRow(std::vector<Lookup>* lookups, std::vector<Lookup>* scratch, int64_t num_rows) {
  constexpr int kDigitBits = 11;
  constexpr size_t kBuckets = size_t{1} << kDigitBits;
  scratch->resize(lookups->size());
  for (int shift = 0; shift < 32 && (num_rows - 1) >> shift > 0; shift += kDigitBits) {
    std::array<uint32_t, kBuckets> start{};
    const auto digit = [shift](Lookup lookup) { return (RowOf(lookup) >> shift) & (kBuckets - 1); };
    for (Lookup lookup : *lookups) ++start[digit(lookup)];
    uint32_t sum = 0;
    for (uint32_t& count : start) {
      const uint32_t here = count;
      count = sum;
      sum += here;
    }
    for (Lookup lookup : *lookups) (*scratch)[start[digit(lookup)]++] = lookup;
    lookups->swap(*scratch);
  }
}

}  // namespace renzan
