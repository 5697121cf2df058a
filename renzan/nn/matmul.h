#pragma once

// Single-threaded float32 matrix products on row-major arrays. The result depends on the shapes,
// the values and the ISA class only. Thread-safe.

#include <cstdint>

namespace renzan {

enum class Transpose { kNo, kYes };

// C[m, n] = op(A)[m, k] · op(B)[k, n] + beta · C. lda, ldb, ldc are the lengths of a stored row.
void Matmul(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, const float* a,
            int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

}  // namespace renzan
