#include "renzan/embedding/sort_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/base/philox.h"

namespace renzan {
namespace {

TEST(SortByRow, IsAStableSort) {
  for (int64_t rows : {1, 2, 3, 2048, 2049, 100000, 40000000, 2147483647}) {
    for (size_t n : {0, 1, 2, 1000}) {
      std::vector<Lookup> lookups, scratch;
      for (uint32_t i = 0; i < n; ++i) {
        const uint32_t word = Philox::Draw(5, i)[0];
        const uint32_t row = static_cast<uint32_t>(word % static_cast<uint64_t>(rows));
        lookups.push_back(MakeLookup(i % 3 == 0 ? row / 2 : row, i));
      }
      std::vector<Lookup> expected = lookups;
      std::stable_sort(expected.begin(), expected.end(),
                       [](Lookup a, Lookup b) { return RowOf(a) < RowOf(b); });
      SortByRow(&lookups, &scratch, rows);
      EXPECT_EQ(lookups, expected) << rows << " rows, " << n << " lookups";
    }
  }
}

}  // namespace
}  // namespace renzan
