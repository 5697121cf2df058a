#pragma once

// The products of all pairs of two rows' values, which a compressed interaction network weights.
// Every operation is rounded by itself, so all instruction sets give the same bits. Thread-safe.

#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

// How many values the functions below need as scratch memory.
int64_t PairScratch(int64_t x_columns, int64_t y_columns);

// pairs[r, i · columns of y + j] = x[first + r, i] · y[first + r, j], for all rows of `pairs`.
void PairProducts(const BlockedMatrix& x, const BlockedMatrix& y, int64_t first, float* scratch,
                  BlockedMatrix* pairs);

// From the gradient of these pairs, adds to row r of d_x and row first + r of d_y. Without d_x, x
// is y, and both are added to d_y. `first` and the number of rows are multiples of 16, or the rows
// are all those of d_y.
void PairProductsBackward(const BlockedMatrix& d_pairs, const BlockedMatrix& x,
                          const BlockedMatrix& y, int64_t first, float* scratch, BlockedMatrix* d_x,
                          BlockedMatrix* d_y);

}  // namespace renzan
