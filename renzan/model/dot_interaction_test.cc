#include "renzan/model/dot_interaction.h"

#include <gtest/gtest.h>

#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/gemm_tiles.h"
#include "renzan/nn/isa.h"
#include "renzan/nn/testing.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

struct Sizes {
  int64_t f, dim;
};

class DotInteraction : public testing::TestWithParam<Sizes> {};

// Calls body() in every instruction-set class that this machine has.
template <class Body>
void InEveryClass(Precision precision, const Body& body) {
  for (const char* isa : {"auto", "sse4", "avx2", "avx512", "avx512_bf16", "amx"}) {
    SCOPED_TRACE(isa);
    try {
      SelectIsa(isa, precision);
    } catch (const Error&) {
      continue;  // not supported by this machine, or not for this precision
    }
    for (const bool emulate : {false, true}) {
      EmulateTileRegisters(emulate);
      body();
    }
    EmulateTileRegisters(false);
  }
  SelectIsa("auto");
}

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

// The results of both directions.
struct Both {
  BlockedMatrix out, dx;

  Both(const Sizes& shape, const BlockedMatrix& x, const BlockedMatrix& d_out, Precision precision)
      : out(x.rows(), d_out.columns(), precision), dx(x.rows(), x.columns(), precision) {
    DotInteractionForward(x, shape.f, shape.dim, &out);
    DotInteractionBackward(x, d_out, shape.f, shape.dim, &dx);
  }
};

BlockedMatrix RandomMatrix(int64_t rows, int64_t columns, uint64_t seed, Precision precision) {
  return Blocked(RandomValues(static_cast<size_t>(rows * columns), seed), rows, columns, precision);
}

BlockedMatrix RowOf(const BlockedMatrix& matrix, int64_t row) {
  BlockedMatrix one(1, matrix.columns(), matrix.precision());
  one.CopyRow(0, 0, matrix, row, 0, matrix.columns());
  return one;
}

constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBFloat16};

// Samples are computed side by side, and the last ones beside nothing.
TEST_P(DotInteraction, OfASampleIsTheSameAloneAndAmongOthers) {
  const auto [f, dim] = GetParam();
  for (const Precision of_inputs : kPrecisions) {
    for (const Precision of_results : kPrecisions) {
      for (const int64_t n : {0, 16, 19}) {
        const BlockedMatrix x = RandomMatrix(n, f * dim, 1, of_inputs);
        const BlockedMatrix d_out = RandomMatrix(n, DotInteractionWidth(f, dim), 2, of_inputs);
        InEveryClass(of_inputs, [&] {
          const Both all(GetParam(), x, d_out, of_results);
          for (int64_t s = 0; s < n; ++s) {
            const Both one(GetParam(), RowOf(x, s), RowOf(d_out, s), of_results);
            ASSERT_EQ(RowMajor(RowOf(all.out, s)), RowMajor(one.out));
            ASSERT_EQ(RowMajor(RowOf(all.dx, s)), RowMajor(one.dx));
          }
        });
      }
    }
  }
}

// Products of matrices read whole blocks, so what fills up the last one stays zero.
TEST_P(DotInteraction, LeavesZerosBehindTheLastColumn) {
  const auto [f, dim] = GetParam();
  const int64_t n = 19, width = DotInteractionWidth(f, dim);
  for (const Precision precision : kPrecisions) {
    InEveryClass(precision, [&] {
      // Working memory holds a larger shape's values.
      const Sizes larger = {50, 80};
      Both(larger, RandomMatrix(n, 50 * 80, 3, precision),
           RandomMatrix(n, DotInteractionWidth(50, 80), 4, precision), precision);
      const Both both(GetParam(), RandomMatrix(n, f * dim, 1, precision),
                      RandomMatrix(n, width, 2, precision), precision);
      for (const BlockedMatrix* result : {&both.out, &both.dx}) {
        const int64_t stored = result->num_blocks() * result->block_columns();
        for (int64_t s = 0; s < n; ++s)
          for (int64_t c = result->columns(); c < stored; ++c) ASSERT_EQ(result->at(s, c), 0);
      }
    });
  }
}

// Both directions against sums in double precision, on inputs rounded to `precision`.
void ExpectProducts(const Sizes& shape, Precision precision) {
  const auto [f, dim] = shape;
  const int64_t n = 19, width = DotInteractionWidth(f, dim);
  const BlockedMatrix x = RandomMatrix(n, f * dim, 1, precision);
  const BlockedMatrix d_out = RandomMatrix(n, width, 2, precision);
  BlockedMatrix out(n, width), dx(n, f * dim);
  DotInteractionForward(x, f, dim, &out);
  DotInteractionBackward(x, d_out, f, dim, &dx);
  const std::vector<float> x_values = RowMajor(x), d_out_values = RowMajor(d_out);
  for (int64_t s = 0; s < n; ++s) {
    std::vector<double> expected_dx(static_cast<size_t>(f * dim));
    const auto expected_at = [&](int64_t i, int64_t k) -> double& {
      return expected_dx[static_cast<size_t>(i * dim + k)];
    };
    const auto value = [&](int64_t i, int64_t k) {
      return double{x_values[static_cast<size_t>((s * f + i) * dim + k)]};
    };
    const auto d_value = [&](int64_t column) {
      return double{d_out_values[static_cast<size_t>(s * width + column)]};
    };
    for (int64_t k = 0; k < dim; ++k) {
      EXPECT_EQ(out.at(s, k), x.at(s, k));
      expected_at(0, k) = d_value(k);
    }
    for (int64_t i = 1, pair = dim; i < f; ++i) {
      for (int64_t j = 0; j < i; ++j, ++pair) {
        double dot = 0;
        for (int64_t k = 0; k < dim; ++k) {
          dot += value(i, k) * value(j, k);
          expected_at(i, k) += d_value(pair) * value(j, k);
          expected_at(j, k) += d_value(pair) * value(i, k);
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

TEST_P(DotInteraction, AgreesWithTheReferenceInEveryClass) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16})
    InEveryClass(precision, [&] { ExpectProducts(GetParam(), precision); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, DotInteraction,
                         testing::Values(Sizes{2, 1}, Sizes{3, 5}, Sizes{7, 8}, Sizes{16, 16},
                                         Sizes{27, 16}, Sizes{9, 33}, Sizes{1, 4}, Sizes{40, 70}));

}  // namespace
}  // namespace renzan
