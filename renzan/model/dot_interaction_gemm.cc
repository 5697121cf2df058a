#include "renzan/model/dot_interaction_gemm.h"

#include "renzan/nn/gemm_tiles.h"

namespace renzan {
namespace {

// The sample's vectors as a matrix. Valid until this thread's next call.
const BlockedMatrix& VectorsOf(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim) {
  thread_local BlockedMatrix vectors;
  vectors.Reshape(f, dim, Precision::kBFloat16);
  for (int64_t i = 0; i < f; ++i) vectors.CopyRow(i, 0, features, s, i * dim, dim);
  return vectors;
}

}  // namespace

void ProductsByGemm(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                    const Scratch& scratch) {
  GramMatrixInTiles(VectorsOf(features, s, f, dim), scratch.products, scratch.f_stride);
}

void GradientsByGemm(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim,
                     const float* d_products, const Scratch& scratch) {
  thread_local BlockedMatrix rounded;
  rounded.Reshape(f, f, Precision::kBFloat16);
  for (int64_t i = 0; i < f; ++i) rounded.SetRow(i, 0, d_products + i * scratch.f_stride, f);
  SmallGemmInTiles(rounded, VectorsOf(features, s, f, dim), scratch.dx, scratch.x_stride);
}

}  // namespace renzan
