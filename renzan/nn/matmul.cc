#include "renzan/nn/matmul.h"

#include <dnnl.h>
#include <omp.h>

#include "renzan/base/error.h"

namespace renzan {

void Matmul(Transpose ta, Transpose tb, int64_t m, int64_t n, int64_t k, const float* a,
            int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  // Our own threads provide the parallelism: oneDNN must neither start threads nor choose its
  // blocking by the number of cores.
  thread_local const bool one_thread = (omp_set_num_threads(1), true);
  (void)one_thread;
  const dnnl_status_t status =
      dnnl_sgemm(ta == Transpose::kYes ? 'T' : 'N', tb == Transpose::kYes ? 'T' : 'N', m, n, k,
                 1.0f, a, lda, b, ldb, beta, c, ldc);
  CHECK_MSG(status == dnnl_success, "dnnl_sgemm({}, {}, {}) returned {}", m, n, k,
            static_cast<int>(status));
}

}  // namespace renzan
