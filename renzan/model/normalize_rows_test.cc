#include "renzan/model/normalize_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/nn/testing.h"
#include "renzan/tensor/blocked_matrix_testing.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

// More rows than a vector has lanes; two parts of 21 columns.
constexpr int64_t kRows = 19, kWidth = 21, kColumns = 2 * kWidth;

// What a row gives, one value after the other.
struct PlainRow {
  PlainRow(const BlockedMatrix& x, const BlockedMatrix& dy, int64_t row,
           const RowNormalization& o) {
    for (int64_t first = 0; first < kColumns; first += kWidth) {
      const float n = static_cast<float>(kWidth);
      float sum = 0, squares = 0, d_sum = 0, product = 0;
      for (int64_t c = 0; c < kWidth; ++c) sum += x.at(row, first + c);
      for (int64_t c = 0; c < kWidth; ++c) {
        const float distance = x.at(row, first + c) - sum / n;
        squares += distance * distance;
      }
      const float scale = 1 / std::sqrt(squares / n + o.epsilon);
      for (int64_t c = 0; c < kWidth; ++c) {
        const float its = (x.at(row, first + c) - sum / n) * scale, d = dy.at(row, first + c);
        y[first + c] = o.gamma[c] * its + o.beta[c];
        d_gamma[c] += d * its;
        d_beta[c] += d;
        d_sum += d * o.gamma[c];
        product += d * o.gamma[c] * its;
      }
      for (int64_t c = 0; c < kWidth; ++c) {
        const float its = (x.at(row, first + c) - sum / n) * scale;
        dx[first + c] =
            scale * (dy.at(row, first + c) * o.gamma[c] - d_sum / n - its * (product / n));
      }
    }
  }
  float y[kColumns], dx[kColumns], d_gamma[kWidth] = {}, d_beta[kWidth] = {};
};

TEST(NormalizeRows, HasTheSameBitsOnEveryInstructionSet) {
  const auto gamma = RandomValues(size_t{kWidth}, 3), beta = RandomValues(size_t{kWidth}, 4);
  const RowNormalization options{kWidth, 1e-5f, gamma.data(), beta.data()};
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto matrix = [&](uint64_t seed) {
      return Blocked(RandomValues(size_t{kRows * kColumns}, seed), kRows, kColumns, precision);
    };
    const BlockedMatrix x = matrix(1), dy = matrix(2);
    BlockedMatrix y = CopyOf(x), dx = CopyOf(x), d_gamma(kRows, kWidth), d_beta(kRows, kWidth);
    for (int64_t row = 0; row < kRows; ++row) {
      const PlainRow plain(x, dy, row, options);
      y.SetRow(row, 0, plain.y, kColumns);
      dx.SetRow(row, 0, plain.dx, kColumns);
      d_gamma.SetRow(row, 0, plain.d_gamma, kWidth);
      d_beta.SetRow(row, 0, plain.d_beta, kWidth);
    }
    testing::OnEveryInstructionSet([&] {
      std::vector<float> scratch(static_cast<size_t>(RowNormalizationScratch(kColumns, kWidth)));
      BlockedMatrix its_y = CopyOf(x), its_d = CopyOf(dy), gammas(kRows, kWidth),
                    betas(kRows, kWidth);
      NormalizeRows(x, options, scratch.data(), &its_y);
      NormalizeRowsBackward(x, its_d, options, scratch.data(), &gammas, &betas, &its_d);
      EXPECT_EQ(RowMajor(its_y), RowMajor(y));
      EXPECT_EQ(RowMajor(its_d), RowMajor(dx));
      EXPECT_EQ(RowMajor(gammas), RowMajor(d_gamma));
      EXPECT_EQ(RowMajor(betas), RowMajor(d_beta));
    });
  }
}

}  // namespace
}  // namespace renzan
