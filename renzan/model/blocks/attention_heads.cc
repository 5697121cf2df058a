#include "renzan/model/blocks/attention_heads.h"

#include <algorithm>
#include <cmath>

namespace renzan {
namespace {

// y += a · x. Loops over independent sums use the machine's vectors and keep each sum's order.
void AddMultiple(float a, const float* __restrict x, int64_t n, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void Softmax(float* x, int64_t n) {
  const float most = *std::max_element(x, x + n);
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    // Of a double: the bits of expf differ between C libraries.
    x[i] = static_cast<float>(std::exp(static_cast<double>(x[i] - most)));
    sum += x[i];
  }
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
}

}  // namespace

void AttentionHeads::Transpose(const float* vectors_of, float* to) const {
  for (int64_t j = 0; j < vectors; ++j)
    for (int64_t c = 0; c < width(); ++c) to[c * vectors + j] = vectors_of[j * width() + c];
}

void AttentionHeads::Products(const float* vector, const float* transposed, int64_t seen,
                              float* products) const {
  std::fill_n(products, seen, 0.0f);
  for (int64_t k = 0; k < dim; ++k)
    AddMultiple(vector[k], transposed + k * vectors, seen, products);
}

void AttentionHeads::Forward(const AttentionValues& at) const {
  float* const keys = at.scratch;
  Transpose(at.key, keys);
  std::fill_n(at.output, columns(), 0.0f);
  std::fill_n(at.weights, weights(), 0.0f);  // of what is not seen
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < vectors; ++i) {
      const int64_t first = h * dim, own = i * width() + first, seen = SeenBy(i);
      float* const weight = at.weights + (h * vectors + i) * vectors;
      Products(at.query + own, keys + first * vectors, seen, weight);
      for (int64_t j = 0; j < seen; ++j) weight[j] *= scale;
      Softmax(weight, seen);
      for (int64_t j = 0; j < seen; ++j)
        AddMultiple(weight[j], at.value + j * width() + first, dim, at.output + own);
    }
}

void AttentionHeads::Backward(const AttentionValues& at) const {
  float *const values = at.scratch, *const d_score = values + columns();
  Transpose(at.value, values);
  for (float* gradient : {at.d_query, at.d_key, at.d_value}) std::fill_n(gradient, columns(), 0.0f);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < vectors; ++i) {
      const int64_t first = h * dim, own = i * width() + first, seen = SeenBy(i);
      const float* const weight = at.weights + (h * vectors + i) * vectors;
      // Through the softmax: d_score_j = weight_j (d_weight_j − Σ weight · d_weight).
      Products(at.output + own, values + first * vectors, seen, d_score);
      float mean = 0;
      for (int64_t j = 0; j < seen; ++j) mean += weight[j] * d_score[j];
      for (int64_t j = 0; j < seen; ++j) d_score[j] = scale * (weight[j] * (d_score[j] - mean));
      for (int64_t j = 0; j < seen; ++j) {
        const int64_t other = j * width() + first;
        AddMultiple(weight[j], at.output + own, dim, at.d_value + other);
        AddMultiple(d_score[j], at.key + other, dim, at.d_query + own);
        AddMultiple(d_score[j], at.query + own, dim, at.d_key + other);
      }
    }
}

}  // namespace renzan
