#pragma once

// The initial values of embedding rows, drawn by row and column of the table, so that they do not
// depend on the plan, the threads or the instruction set.

#include <cstdint>
#include <span>
#include <string>

namespace renzan {

enum class Distribution { kUniform, kNormal, kZeros };
// As manifests name it.
const char* Name(Distribution distribution);
// Throws Error kData for other names.
Distribution ParseDistribution(const std::string& name);

// How the rows of an embedding table begin.
struct InitialRows {
  uint64_t key = 0;  // of DrawInitialRows()
  float bound = 0;   // of uniform values: [-bound, bound); of normal ones, the standard deviation
  float state = 0;   // every value of a row's optimizer state
  Distribution distribution = Distribution::kUniform;

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

// Draws `values` [rows, columns]. That of row r and column c of the table depends on word c mod 4
// drawn for the key and (r, ⌊c / 4⌋): a uniform one is bound · (2u - 1), where u is Philox::Uniform
// of the word, and a normal one bound · NormalQuantile(word). Thread-safe.
void DrawInitialRows(const InitialRows& initial, const RowsOfColumns& of, std::span<float> values);

// The same for one row.
void DrawInitialRow(const InitialRows& initial, int64_t row, int64_t first_column,
                    std::span<float> values);

// The quantile of the standard normal distribution at (word + 0.5) / 2³², within 1e-6, by Wichura's
// AS 241 (1988). It needs nothing but correctly rounded operations, so every machine gives the same
// bits; libraries differ in the last bit of their logarithms.
double NormalQuantile(uint32_t word);

}  // namespace renzan
