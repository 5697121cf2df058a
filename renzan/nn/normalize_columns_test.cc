#include "renzan/nn/normalize_columns.h"

#include <gtest/gtest.h>

#include "renzan/nn/testing.h"
#include "renzan/tensor/blocked_matrix_testing.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

// The last block of columns is not full, and rows are not a multiple of anything.
constexpr int64_t kRows = 5, kColumns = 37;

BlockedMatrix Matrix(uint64_t seed, Precision precision) {
  return Blocked(RandomValues(size_t{kRows * kColumns}, seed), kRows, kColumns, precision);
}

// One value after the other, with the operations that the header states.
struct Plain {
  Plain(const BlockedMatrix& x_in, const BlockedMatrix& dy_in, const ColumnScales& scales)
      : x(x_in), dy(dy_in), y(kRows, kColumns, x.precision()), dx(kRows, kColumns, dy.precision()) {
    for (int64_t c = 0; c < kColumns; ++c) OfColumn(c, scales);
  }
  void OfColumn(int64_t c, const ColumnScales& s) {
    const auto normalized = [&](int64_t row) { return (x.at(row, c) - s.mean[c]) * s.scale[c]; };
    double mean = 0, square = 0, sum = 0, product = 0;
    for (int64_t row = 0; row < kRows; ++row) mean += double{x.at(row, c)};
    mean /= kRows;
    for (int64_t row = 0; row < kRows; ++row) {
      square += (double{x.at(row, c)} - mean) * (double{x.at(row, c)} - mean);
      sum += double{dy.at(row, c)};
      product += double{dy.at(row, c)} * double{normalized(row)};
    }
    for (int64_t row = 0; row < kRows; ++row) {
      y.Set(row, c, s.gamma ? s.gamma[c] * normalized(row) + s.beta[c] : normalized(row));
      dx.Set(row, c,
             (s.gamma ? s.gamma[c] * s.scale[c] : s.scale[c]) *
                 (dy.at(row, c) - static_cast<float>(sum / kRows) -
                  normalized(row) * static_cast<float>(product / kRows)));
    }
    means.push_back(mean);
    squares.push_back(square);
    d_gamma.push_back(static_cast<float>(product));
    d_beta.push_back(static_cast<float>(sum));
  }
  const BlockedMatrix &x, &dy;
  BlockedMatrix y, dx;
  std::vector<double> means, squares;
  std::vector<float> d_gamma, d_beta;
};

TEST(NormalizeColumns, HasTheSameBitsOnEveryInstructionSet) {
  const auto vector = [](uint64_t seed) { return RandomValues(size_t{kColumns}, seed); };
  const auto mean = vector(3), scale = vector(4), gamma = vector(5), beta = vector(6);
  for (const Precision of_x : {Precision::kFloat32, Precision::kBFloat16})
    for (const Precision of_dy : {Precision::kFloat32, Precision::kBFloat16})
      for (const bool affine : {true, false}) {
        const BlockedMatrix x = Matrix(1, of_x), dy = Matrix(2, of_dy);
        const ColumnScales scales{mean.data(), scale.data(), affine ? gamma.data() : nullptr,
                                  affine ? beta.data() : nullptr};
        const Plain plain(x, dy, scales);
        testing::OnEveryInstructionSet([&] {
          std::vector<double> means(kColumns), squares(kColumns);
          ColumnMoments(x, means.data(), squares.data());
          EXPECT_EQ(means, plain.means);
          EXPECT_EQ(squares, plain.squares);
          BlockedMatrix y(kRows, kColumns, of_x);
          NormalizeColumns(x, scales, &y);
          EXPECT_EQ(RowMajor(y), RowMajor(plain.y));
          BlockedMatrix dx = CopyOf(dy);
          std::vector<float> d_gamma(kColumns), d_beta(kColumns);
          NormalizeColumnsBackward(x, dx, scales, d_gamma.data(), d_beta.data(), &dx);
          EXPECT_EQ(RowMajor(dx), RowMajor(plain.dx));
          EXPECT_EQ(d_gamma, plain.d_gamma);
          EXPECT_EQ(d_beta, plain.d_beta);
          // Products of bfloat16 rely on the zeros that fill up the last block.
          const float* const after = y.block(y.num_blocks() - 1) + BlockedMatrix::kLanes - 1;
          EXPECT_EQ(*after, 0.0f);
        });
      }
}

}  // namespace
}  // namespace renzan
