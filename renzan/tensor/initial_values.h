#pragma once

// The initial values of embedding rows: uniform in [-bound, bound), drawn by row and column of the
// table, so that they do not depend on the plan, the threads or the instruction set.

#include <cstdint>
#include <span>

namespace renzan {

// How the rows of an embedding table begin.
struct InitialRows {
  uint64_t key = 0;  // of DrawInitialRows()
  float bound = 0;   // likewise
  float state = 0;   // every value of a row's optimizer state

  bool operator==(const InitialRows&) const = default;
};

// Rows first_row, first_row + row_stride, ... of a table, each from `first_column` on.
struct RowsOfColumns {
  int64_t first_row = 0;
  uint32_t row_stride = 1;  // at most kMostRowStride
  int64_t first_column = 0;
  int64_t columns = 0;  // of each row
};
inline constexpr uint32_t kMostRowStride = 1u << 24;

// Draws `values` [rows, columns]. That of row r and column c of the table is bound · (2u - 1),
// where u is Philox::Uniform of word c mod 4 drawn for `key` and (r, ⌊c / 4⌋). Thread-safe.
void DrawInitialRows(uint64_t key, float bound, const RowsOfColumns& of, std::span<float> values);

// The same for one row.
void DrawInitialRow(uint64_t key, float bound, int64_t row, int64_t first_column,
                    std::span<float> values);

}  // namespace renzan
