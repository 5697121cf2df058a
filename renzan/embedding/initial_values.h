#pragma once

// The initial values of embedding rows: uniform in [-bound, bound), drawn for the row and column of
// the table, so that no plan, thread or instruction set changes them.

#include <cstdint>
#include <span>

namespace renzan {

// Value (r, c) of `rows` [n, columns] is bound · (2u - 1), where u is Philox::Uniform of word C mod
// 4 drawn for `key` and (R, ⌊C / 4⌋), with R = first_row + r · stride and C = first_column + c.
// Thread-safe.
void DrawInitialRows(uint64_t key, float bound, int64_t first_row, int64_t stride,
                     int64_t first_column, int64_t columns, std::span<float> rows);

}  // namespace renzan
