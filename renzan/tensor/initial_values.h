#pragma once

// The initial values of embedding rows: uniform in [-bound, bound), drawn by row and column of the
// table, so that they do not depend on the plan, the threads or the instruction set.

#include <cstdint>
#include <span>

namespace renzan {

// How the rows of an embedding table begin.
struct InitialRows {
  uint64_t key = 0;  // of DrawInitialRow()
  float bound = 0;   // likewise
  float state = 0;   // every value of a row's optimizer state

  bool operator==(const InitialRows&) const = default;
};

// Value c is bound · (2u - 1), where u is Philox::Uniform of word C mod 4 drawn for `key` and
// (row, ⌊C / 4⌋), with C = first_column + c. Thread-safe.
void DrawInitialRow(uint64_t key, float bound, int64_t row, int64_t first_column,
                    std::span<float> values);

}  // namespace renzan
