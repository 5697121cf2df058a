#include "renzan/nn/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "renzan/base/blocked_matrix_testing.h"
#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/isa.h"

namespace renzan {
namespace {

struct Shape {
  int64_t m, n, k;
};

// A product whose C was something else before.
struct Product {
  BlockedMatrix a, b, mask, c;
  std::vector<float> bias;

  explicit Product(const Shape& s) : bias(RandomValues(static_cast<size_t>(s.n), 3)) {
    a = Random(s.m, s.k, 1);
    b = Random(s.k, s.n, 2);
    mask = Random(s.m, s.n, 4);
    c = Random(s.m, s.n, 5);
  }

  static BlockedMatrix Random(int64_t rows, int64_t columns, uint64_t seed) {
    return Blocked(RandomValues(static_cast<size_t>(rows * columns), seed), rows, columns);
  }

  std::vector<GemmOptions> AllOptions() const {
    return {{},
            {.bias = bias.data(), .relu = true},
            {.accumulate = true},
            {.mask = &mask, .mask_scale = 1.25f}};
  }

  std::vector<float> Run(const GemmOptions& options) const {
    BlockedMatrix result = Blocked(RowMajor(c), c.rows(), c.columns());
    Gemm(a, b, options, &result);
    return RowMajor(result);
  }

  // The definition: one chain over k.
  std::vector<float> Expected(const GemmOptions& options) const {
    std::vector<float> result;
    for (int64_t i = 0; i < c.rows(); ++i) {
      for (int64_t j = 0; j < c.columns(); ++j) {
        float sum = options.accumulate        ? c.at(i, j)
                    : options.bias != nullptr ? bias[static_cast<size_t>(j)]
                                              : 0.0f;
        for (int64_t k = 0; k < b.rows(); ++k) sum = std::fma(a.at(i, k), b.at(k, j), sum);
        if (options.relu && sum < 0) sum = 0;
        if (options.mask != nullptr) sum = mask.at(i, j) > 0 ? sum * options.mask_scale : 0;
        result.push_back(sum);
      }
    }
    return result;
  }
};

constexpr Shape kShapes[] = {{1, 1, 1},    {3, 7, 5},      {8, 48, 64},  {13, 16, 9}, {9, 33, 1},
                             {17, 65, 31}, {21, 100, 700}, {2, 367, 40}, {8, 64, 0},  {40, 13, 32}};

// The instruction sets of this machine that fuse multiply and add.
std::vector<std::string> FusedClasses() {
  std::vector<std::string> classes;
  for (const std::string name : {"avx512", "avx2", "neon"}) {
    try {
      classes.push_back(SelectIsa(name));
    } catch (const Error&) {
    }
  }
  return classes;
}

TEST(Gemm, EveryElementIsOneChainOfFusedMultiplyAdds) {
  for (const std::string& isa : FusedClasses()) {
    SelectIsa(isa);
    for (const Shape& shape : kShapes) {
      const Product product(shape);
      for (const GemmOptions& options : product.AllOptions())
        ASSERT_EQ(product.Run(options), product.Expected(options))
            << isa << " " << shape.m << " " << shape.n << " " << shape.k;
    }
  }
  SelectIsa("auto");
}

TEST(Gemm, OfATransposedMatrixIsTheSameAndSumsItsColumnsInOrder) {
  for (const std::string& isa : FusedClasses()) {
    SelectIsa(isa);
    for (const Shape& shape : kShapes) {
      const Product product(shape);
      BlockedMatrix transposed(shape.k, shape.m);
      std::vector<float> expected_sums(static_cast<size_t>(shape.m));
      for (int64_t k = 0; k < shape.k; ++k) {
        for (int64_t i = 0; i < shape.m; ++i) {
          transposed.at(k, i) = product.a.at(i, k);
          expected_sums[static_cast<size_t>(i)] += product.a.at(i, k);
        }
      }
      // What follows C and the sums in memory stays as it is.
      std::vector<float> c(static_cast<size_t>(shape.m * shape.n) + 1, 9);
      std::vector<float> sums(static_cast<size_t>(shape.m) + 1, 9);
      TransposedGemm(transposed, product.b, sums.data(), c.data());
      EXPECT_EQ(c.back(), 9);
      EXPECT_EQ(sums.back(), 9);
      c.pop_back();
      sums.pop_back();
      ASSERT_EQ(c, product.Expected({})) << isa << " " << shape.m << " " << shape.n;
      ASSERT_EQ(sums, expected_sums);
    }
  }
  SelectIsa("auto");
}

TEST(Gemm, WithoutFusedMultiplyAddsItIsTheSameUpToRounding) {
  try {
    SelectIsa("sse4");
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no SSE4";
  }
  const Product product({13, 70, 90});
  for (const GemmOptions& options : product.AllOptions()) {
    const auto result = product.Run(options), expected = product.Expected(options);
    for (size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4);
  }
  SelectIsa("auto");
}

TEST(Gemm, ReluKeepsNan) {
  const std::vector<float> nan = {NAN}, one = {1};
  BlockedMatrix c(1, 1);
  Gemm(Blocked(nan, 1, 1), Blocked(one, 1, 1), {.relu = true}, &c);
  EXPECT_TRUE(std::isnan(c.at(0, 0)));
}

}  // namespace
}  // namespace renzan
