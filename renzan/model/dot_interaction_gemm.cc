#include "renzan/model/dot_interaction_gemm.h"

#include <algorithm>
#include <vector>

#include "renzan/nn/gemm_tiles.h"

namespace renzan {
namespace {

// A sample's vectors as a matrix, valid until this thread's next call.
const BlockedMatrix& VectorsOf(const BlockedMatrix& features, int64_t s, int64_t f, int64_t dim) {
  thread_local BlockedMatrix vectors;
  vectors.Reshape(f, dim, Precision::kBFloat16);
  for (int64_t i = 0; i < f; ++i) vectors.CopyRow(i, 0, features, s, i * dim, dim);
  return vectors;
}

// Products with so many `columns` write whole tiles.
int64_t StrideFor(int64_t columns) { return (columns + 15) / 16 * 16; }

}  // namespace

void DotInteractionForwardByGemm(const BlockedMatrix& features, int64_t f, int64_t dim,
                                 BlockedMatrix* out) {
  const int64_t stride = StrideFor(f);
  std::vector<float> products(static_cast<size_t>(StrideFor(f) * stride));
  std::vector<float> vector(static_cast<size_t>(dim));
  for (int64_t s = 0; s < features.rows(); ++s) {
    features.GetRow(s, 0, vector.data(), dim);
    out->SetRow(s, 0, vector.data(), dim);
    GramMatrixInTiles(VectorsOf(features, s, f, dim), products.data(), stride);
    for (int64_t i = 1, pair = dim; i < f; pair += i, ++i)
      out->SetRow(s, pair, products.data() + i * stride, i);
  }
}

void DotInteractionBackwardByGemm(const BlockedMatrix& features, const BlockedMatrix& d_out,
                                  int64_t f, int64_t dim, BlockedMatrix* d_features) {
  const int64_t stride = StrideFor(dim);
  std::vector<float> row(static_cast<size_t>(d_out.columns()));
  std::vector<float> dx(static_cast<size_t>(StrideFor(f) * stride));
  // Symmetric, with zeros on the diagonal.
  std::vector<float> d_products(static_cast<size_t>(f * f));
  thread_local BlockedMatrix rounded;
  rounded.Reshape(f, f, Precision::kBFloat16);
  for (int64_t s = 0; s < features.rows(); ++s) {
    d_out.GetRow(s, 0, row.data(), d_out.columns());
    const float* pair = row.data() + dim;
    for (int64_t i = 1; i < f; ++i) {
      for (int64_t j = 0; j < i; ++j, ++pair) {
        d_products[static_cast<size_t>(i * f + j)] = *pair;
        d_products[static_cast<size_t>(j * f + i)] = *pair;
      }
    }
    for (int64_t i = 0; i < f; ++i) rounded.SetRow(i, 0, d_products.data() + i * f, f);
    SmallGemmInTiles(rounded, VectorsOf(features, s, f, dim), dx.data(), stride);
    for (int64_t k = 0; k < dim; ++k) dx[static_cast<size_t>(k)] += row[static_cast<size_t>(k)];
    for (int64_t i = 0; i < f; ++i) d_features->SetRow(s, i * dim, dx.data() + i * stride, dim);
  }
}

}  // namespace renzan
