// The dot interaction of bfloat16 in the class "amx", bit by bit.

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/model/dot_interaction.h"
#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/isa.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

// By the definition: of each 32 terms, one chain of the even and one of the odd ones.
float Dot(int64_t n, const auto& x, const auto& y) {
  const FlushDenormals flush;
  float sum = 0;
  for (int64_t k0 = 0; k0 < n; k0 += 32) {
    float chains[2] = {0, 0};
    for (int64_t k = k0; k < std::min(k0 + 32, n); ++k)
      chains[k % 2] = std::fma(x(k), y(k), chains[k % 2]);
    sum = sum + (chains[0] + chains[1]);
  }
  return sum;
}

BlockedMatrix ForwardByDefinition(const BlockedMatrix& x, int64_t f, int64_t dim) {
  BlockedMatrix out(x.rows(), DotInteractionWidth(f, dim), Precision::kBFloat16);
  for (int64_t s = 0; s < x.rows(); ++s) {
    std::vector<float> row(static_cast<size_t>(f * dim));
    x.GetRow(s, 0, row.data(), f * dim);
    const auto vector = [&](int64_t i) { return [&, i](int64_t k) { return row[i * dim + k]; }; };
    out.SetRow(s, 0, row.data(), dim);
    for (int64_t i = 1, pair = dim; i < f; ++i)
      for (int64_t j = 0; j < i; ++j) out.Set(s, pair++, Dot(dim, vector(i), vector(j)));
  }
  return out;
}

BlockedMatrix BackwardByDefinition(const BlockedMatrix& x, const BlockedMatrix& d_out, int64_t f,
                                   int64_t dim) {
  BlockedMatrix dx(x.rows(), f * dim, Precision::kBFloat16);
  for (int64_t s = 0; s < x.rows(); ++s) {
    std::vector<float> row(static_cast<size_t>(f * dim)), d(static_cast<size_t>(d_out.columns()));
    x.GetRow(s, 0, row.data(), f * dim);
    d_out.GetRow(s, 0, d.data(), d_out.columns());
    for (int64_t i = 0; i < f; ++i) {
      const auto gradient = [&](int64_t j) {
        const int64_t high = std::max(i, j), low = std::min(i, j);
        return i == j ? 0.0f : d[dim + high * (high - 1) / 2 + low];
      };
      for (int64_t k = 0; k < dim; ++k) {
        const float sum = Dot(f, gradient, [&](int64_t j) { return row[j * dim + k]; });
        dx.Set(s, i * dim + k, i == 0 ? sum + d[k] : sum);
      }
    }
  }
  return dx;
}

// Includes the columns that fill up the last line.
void ExpectSameBits(const BlockedMatrix& matrix, const BlockedMatrix& expected) {
  for (int64_t block = 0; block < matrix.num_blocks(); ++block) {
    const auto* bits = reinterpret_cast<const BFloat16Bits*>(matrix.block(block));
    const auto* expected_bits = reinterpret_cast<const BFloat16Bits*>(expected.block(block));
    for (int64_t i = 0; i < matrix.rows() * 32; ++i)
      ASSERT_EQ(bits[i], expected_bits[i])
          << "row " << i / 32 << ", column " << block * 32 + i % 32;
  }
}

struct Magnitudes {
  float x, d_out;
};

void ExpectDefinition(int64_t f, int64_t dim, const Magnitudes& magnitudes) {
  const int64_t n = 1 + f % 5, width = DotInteractionWidth(f, dim);
  const auto random = [&](int64_t columns, uint64_t seed, float magnitude) {
    return Blocked(RandomValues(static_cast<size_t>(n * columns), seed, magnitude), n, columns,
                   Precision::kBFloat16);
  };
  const BlockedMatrix x = random(f * dim, 1, magnitudes.x);
  const BlockedMatrix d_out = random(width, 2, magnitudes.d_out);
  const BlockedMatrix expected_out = ForwardByDefinition(x, f, dim);
  const BlockedMatrix expected_dx = BackwardByDefinition(x, d_out, f, dim);
  struct Run {
    const char* name;
    bool emulate;
    int64_t targets;  // 0 for all
  };
  for (const Run& run : {Run{"as it is", false, 0}, Run{"emulated", true, 0},
                         Run{"emulated with AVX2", true, HWY_AVX2}}) {
    SCOPED_TRACE(run.name);
    EmulateTileRegisters(run.emulate);
    hwy::SetSupportedTargetsForTest(run.targets);
    hwy::GetChosenTarget().DeInit();
    BlockedMatrix out(n, width, Precision::kBFloat16), dx(n, f * dim, Precision::kBFloat16);
    DotInteractionForward(x, f, dim, &out);
    DotInteractionBackward(x, d_out, f, dim, &dx);
    ExpectSameBits(out, expected_out);
    ExpectSameBits(dx, expected_dx);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  EmulateTileRegisters(false);
}

class DotInteractionInTiles : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    try {
      SelectIsa("amx", Precision::kBFloat16);
    } catch (const Error&) {
      GTEST_SKIP() << "this machine has no AVX2";
    }
  }
  void TearDown() override { SelectIsa("auto"); }
};

TEST_P(DotInteractionInTiles, HasTheBitsOfTheDefinition) {
  const int64_t dim = GetParam();
  for (int64_t f = 2; f <= 40 && !HasFailure(); ++f) {
    SCOPED_TRACE(f);
    ExpectDefinition(f, dim, {1.0f, 1.0f});
  }
}

// Products that are denormal, and gradients that are.
TEST_P(DotInteractionInTiles, FlushesDenormalsAsTheDefinitionDoes) {
  const int64_t dim = GetParam();
  for (const int64_t f : {2, 3, 9, 16, 17, 27, 32, 33}) {
    SCOPED_TRACE(f);
    ExpectDefinition(f, dim, {1e-19f, 1e-19f});
    ExpectDefinition(f, dim, {1.0f, 1e-39f});
    ExpectDefinition(f, dim, {1e-39f, 1.0f});
  }
}

INSTANTIATE_TEST_SUITE_P(Dims, DotInteractionInTiles,
                         testing::Values(1, 7, 16, 32, 40, 48, 64, 128));

}  // namespace
}  // namespace renzan
