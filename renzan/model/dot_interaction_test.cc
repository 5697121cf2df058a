#include "renzan/model/dot_interaction.h"

#include <gtest/gtest.h>

#include <vector>

#include "renzan/base/blocked_matrix_testing.h"
#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/gemm_tiles.h"
#include "renzan/nn/isa.h"
#include "renzan/nn/testing.h"

namespace renzan {
namespace {

struct Shape {
  int64_t f, dim;
};

class DotInteraction : public testing::TestWithParam<Shape> {};

TEST_P(DotInteraction, AgreesWithTheReference) {
  const auto [f, dim] = GetParam();
  const int64_t n = 19, width = DotInteractionWidth(f, dim);
  const auto x = RandomValues(static_cast<size_t>(n * f * dim), 1);
  BlockedMatrix result(n, width);
  DotInteractionForward(Blocked(x, n, f * dim), f, dim, &result);
  const std::vector<float> out = RowMajor(result);
  for (int64_t s = 0; s < n; ++s) {
    const float* sample = x.data() + s * f * dim;
    const float* y = out.data() + s * width;
    for (int64_t k = 0; k < dim; ++k) EXPECT_EQ(*y++, sample[k]);
    for (int64_t i = 1; i < f; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t k = 0; k < dim; ++k)
          dot += double{sample[i * dim + k]} * double{sample[j * dim + k]};
        ASSERT_NEAR(*y++, dot, 1e-4);
      }
    }
  }
}

TEST_P(DotInteraction, GradientsAgreeWithFiniteDifferences) {
  const auto [f, dim] = GetParam();
  const int64_t n = 2, width = DotInteractionWidth(f, dim);
  auto x = RandomValues(static_cast<size_t>(n * f * dim), 1);
  const auto weights = RandomValues(static_cast<size_t>(n * width), 2);
  BlockedMatrix dx(n, f * dim), result(n, width);
  DotInteractionBackward(Blocked(x, n, f * dim), Blocked(weights, n, width), f, dim, &dx);
  const double error = GradientError(x, RowMajor(dx), [&] {
    DotInteractionForward(Blocked(x, n, f * dim), f, dim, &result);
    const std::vector<float> out = RowMajor(result);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += double{weights[i]} * double{out[i]};
    return sum;
  });
  EXPECT_LT(error, 1e-3);
}

// Samples are computed side by side, and the last ones with nobody beside them.
TEST_P(DotInteraction, OfASampleIsTheSameAloneAndAmongOthers) {
  const auto [f, dim] = GetParam();
  const int64_t n = 19, width = DotInteractionWidth(f, dim);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto random = [&](int64_t columns, uint64_t seed) {
      return Blocked(RandomValues(static_cast<size_t>(n * columns), seed), n, columns, precision);
    };
    const BlockedMatrix x = random(f * dim, 1), d_out = random(width, 2);
    BlockedMatrix out(n, width, precision), dx(n, f * dim, precision);
    DotInteractionForward(x, f, dim, &out);
    DotInteractionBackward(x, d_out, f, dim, &dx);
    for (int64_t s = 0; s < n; ++s) {
      BlockedMatrix one_x(1, f * dim, precision), one_d_out(1, width, precision);
      BlockedMatrix one_out(1, width, precision), one_dx(1, f * dim, precision);
      one_x.CopyRow(0, 0, x, s, 0, f * dim);
      one_d_out.CopyRow(0, 0, d_out, s, 0, width);
      DotInteractionForward(one_x, f, dim, &one_out);
      DotInteractionBackward(one_x, one_d_out, f, dim, &one_dx);
      for (int64_t c = 0; c < width; ++c) ASSERT_EQ(out.at(s, c), one_out.at(0, c));
      for (int64_t c = 0; c < f * dim; ++c) ASSERT_EQ(dx.at(s, c), one_dx.at(0, c));
    }
  }
}

// Products of matrices read whole blocks, so what fills up the last one stays zero.
TEST_P(DotInteraction, LeavesZerosBehindTheLastColumn) {
  const auto [f, dim] = GetParam();
  const int64_t n = 19, width = DotInteractionWidth(f, dim);
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto random = [&](int64_t columns, uint64_t seed) {
      return Blocked(RandomValues(static_cast<size_t>(n * columns), seed), n, columns, precision);
    };
    BlockedMatrix out(n, width, precision), dx(n, f * dim, precision);
    DotInteractionForward(random(f * dim, 1), f, dim, &out);
    DotInteractionBackward(random(f * dim, 1), random(width, 2), f, dim, &dx);
    for (const BlockedMatrix* result : {&out, &dx}) {
      const int64_t stored = result->num_blocks() * result->block_columns();
      for (int64_t s = 0; s < n; ++s)
        for (int64_t c = result->columns(); c < stored; ++c) ASSERT_EQ(result->at(s, c), 0);
    }
  }
}

// Both directions against sums in double precision, on rounded inputs.
void ExpectProductsOfBFloat16(const Shape& shape) {
  const auto [f, dim] = shape;
  const int64_t n = 19, width = DotInteractionWidth(f, dim);
  const auto random = [](int64_t rows, int64_t columns, uint64_t seed) {
    return Blocked(RandomValues(static_cast<size_t>(rows * columns), seed), rows, columns,
                   Precision::kBFloat16);
  };
  const BlockedMatrix x = random(n, f * dim, 1), d_out = random(n, width, 2);
  BlockedMatrix out(n, width), dx(n, f * dim);
  DotInteractionForward(x, f, dim, &out);
  DotInteractionBackward(x, d_out, f, dim, &dx);
  for (int64_t s = 0; s < n; ++s) {
    std::vector<double> expected_dx(static_cast<size_t>(f * dim));
    const auto expected_at = [&](int64_t i, int64_t k) -> double& {
      return expected_dx[static_cast<size_t>(i * dim + k)];
    };
    const auto value = [&](int64_t i, int64_t k) { return double{x.at(s, i * dim + k)}; };
    for (int64_t k = 0; k < dim; ++k) {
      EXPECT_EQ(out.at(s, k), x.at(s, k));
      expected_at(0, k) = double{d_out.at(s, k)};
    }
    for (int64_t i = 1, pair = dim; i < f; ++i) {
      for (int64_t j = 0; j < i; ++j, ++pair) {
        double dot = 0;
        for (int64_t k = 0; k < dim; ++k) {
          dot += value(i, k) * value(j, k);
          expected_at(i, k) += double{d_out.at(s, pair)} * value(j, k);
          expected_at(j, k) += double{d_out.at(s, pair)} * value(i, k);
        }
        ASSERT_NEAR(out.at(s, pair), dot, 1e-4);
      }
    }
    for (int64_t i = 0; i < f; ++i)
      for (int64_t k = 0; k < dim; ++k) ASSERT_NEAR(dx.at(s, i * dim + k), expected_at(i, k), 1e-4);
  }
}

// Whether a class has AMX's order shows in the last bits only.
TEST(DotInteractionOfBFloat16, IsUsedInTheClassOfAmxAlone) {
  const int64_t f = 27, dim = 40;
  const auto values = RandomValues(f * dim, 1);
  const BlockedMatrix x = Blocked(values, 1, f * dim, Precision::kBFloat16);
  const auto products = [&](const char* isa) {
    SelectIsa(isa, Precision::kBFloat16);
    BlockedMatrix out(1, DotInteractionWidth(f, dim));
    DotInteractionForward(x, f, dim, &out);
    const std::vector<float> row = RowMajor(out);
    return std::vector<float>(row.begin() + dim, row.end());
  };
  try {
    SelectIsa("amx", Precision::kBFloat16);
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no AVX2";
  }
  const std::vector<float> in_tiles = products("amx");
  std::vector<float> gram(f * 32), lower;
  GramMatrixInTiles(Blocked(values, f, dim, Precision::kBFloat16), gram.data(), 32);
  for (int64_t i = 1; i < f; ++i)
    lower.insert(lower.end(), gram.data() + i * 32, gram.data() + i * 32 + i);
  EXPECT_EQ(in_tiles, lower);
  EXPECT_NE(in_tiles, products("avx2"));
  EmulateTileRegisters(true);
  EXPECT_EQ(in_tiles, products("amx"));
  EmulateTileRegisters(false);
  SelectIsa("auto");
}

TEST_P(DotInteraction, OfBFloat16AgreesWithTheReferenceInEveryClass) {
  for (const char* isa : {"auto", "avx2", "avx512", "avx512_bf16", "amx"}) {
    SCOPED_TRACE(isa);
    try {
      SelectIsa(isa, Precision::kBFloat16);
    } catch (const Error&) {
      continue;  // not on this machine
    }
    for (const bool emulate : {false, true}) {
      EmulateTileRegisters(emulate);
      ExpectProductsOfBFloat16(GetParam());
    }
    EmulateTileRegisters(false);
  }
  SelectIsa("auto");
}

INSTANTIATE_TEST_SUITE_P(Shapes, DotInteraction,
                         testing::Values(Shape{2, 1}, Shape{3, 5}, Shape{7, 8}, Shape{16, 16},
                                         Shape{27, 16}, Shape{9, 33}, Shape{1, 4}, Shape{40, 70}));

}  // namespace
}  // namespace renzan
