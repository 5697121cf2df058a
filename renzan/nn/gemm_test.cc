#include "renzan/nn/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/flush_denormals.h"
#include "renzan/nn/gemm_tiles.h"
#include "renzan/nn/isa.h"
#include "renzan/nn/pack_pairs.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

struct Shape {
  int64_t m, n, k;
};

RightOperand Right(std::span<const float> values, int64_t rows, int64_t columns,
                   Precision precision) {
  RightOperand operand(rows, columns, precision);
  for (int64_t block = 0; block < operand.num_blocks(); ++block)
    operand.SetBlock(block, values.data());
  return operand;
}

// The order in which the terms of an element are added (gemm.h).
enum class Order { kAscending, kPairs, kTiles };

// A product whose C held other values before.
struct Product {
  Shape shape;
  Order order;
  Precision precision;
  BlockedMatrix a, mask, c;
  std::vector<float> b, bias;  // b as rounded

  // `scale` multiplies all operands.
  Product(const Shape& s, Order order, float scale = 1.0f)
      : shape(s),
        order(order),
        precision(order == Order::kAscending ? Precision::kFloat32 : Precision::kBFloat16),
        bias(Values(1, s.n, 3, scale)) {
    a = Blocked(Values(s.m, s.k, 1, scale), s.m, s.k, precision);
    b = RowMajor(Blocked(Values(s.k, s.n, 2, scale), s.k, s.n, precision));
    mask = Blocked(Values(s.m, s.n, 4, 1), s.m, s.n, precision);
    c = Blocked(Values(s.m, s.n, 5, scale), s.m, s.n, precision);
  }

  static std::vector<float> Values(int64_t rows, int64_t columns, uint64_t seed, float scale) {
    std::vector<float> values = RandomValues(static_cast<size_t>(rows * columns), seed);
    for (float& value : values) value *= scale;
    return values;
  }

  std::vector<GemmOptions> AllOptions() const {
    return {{},
            {.bias = bias.data(), .relu = true},
            {.accumulate = true},
            {.mask = &mask, .mask_scale = 1.25f}};
  }

  std::vector<float> Run(const GemmOptions& options) const {
    BlockedMatrix result = Blocked(RowMajor(c), shape.m, shape.n, precision);
    Gemm(a, Right(b, shape.k, shape.n, precision), options, &result);
    return RowMajor(result);
  }

  // `sum` plus A[i, k] · B[k, j].
  float Chain(int64_t i, int64_t j, float sum) const {
    const auto add = [&](int64_t k, float* to) {
      const float x = k < shape.k ? a.at(i, k) : 0;
      const float y = k < shape.k ? b[static_cast<size_t>(k * shape.n + j)] : 0;
      *to = std::fma(x, y, *to);
    };
    if (order == Order::kAscending) {
      for (int64_t k = 0; k < shape.k; ++k) add(k, &sum);
      return sum;
    }
    const FlushDenormals flush;
    if (order == Order::kPairs) {
      for (int64_t k = 0; k < shape.k; k += 2) {
        add(k + 1, &sum);
        add(k, &sum);
      }
      return sum;
    }
    for (int64_t k0 = 0; k0 < shape.k; k0 += 32) {
      float even = 0, odd = 0;
      for (int64_t k = k0; k < k0 + 32; k += 2) {
        add(k, &even);
        add(k + 1, &odd);
      }
      sum += even + odd;
    }
    return sum;
  }

  // The definition.
  std::vector<float> Expected(const GemmOptions& options) const {
    std::vector<float> result;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        float sum = Chain(i, j,
                          options.accumulate        ? c.at(i, j)
                          : options.bias != nullptr ? bias[static_cast<size_t>(j)]
                                                    : 0.0f);
        if (options.relu && sum < 0) sum = 0;
        if (options.mask != nullptr) sum = mask.at(i, j) > 0 ? sum * options.mask_scale : 0;
        result.push_back(sum);
      }
    }
    return RowMajor(Blocked(result, shape.m, shape.n, precision));
  }
};

constexpr Shape kShapes[] = {{1, 1, 1},    {3, 7, 5},      {8, 48, 64},  {13, 16, 9}, {9, 33, 1},
                             {17, 65, 31}, {21, 100, 700}, {2, 367, 40}, {8, 64, 0},  {40, 13, 32}};

// Calls body() with each instruction set of this machine that adds in this order.
template <class Body>
void OnEveryClass(Order order, const Body& body) {
  const auto on = [&](const char* name) {
    SCOPED_TRACE(name);
    try {
      SelectIsa(name);
    } catch (const Error&) {
      return;  // not supported by this machine
    }
    body();
  };
  if (order == Order::kTiles) {
    on("amx");
    EmulateTileRegisters(true);
    on("amx");
    EmulateTileRegisters(false);
  } else {
    for (const char* name : {"avx512_bf16", "avx512", "avx2", "neon"}) on(name);
  }
  SelectIsa("auto");
}

class GemmOf : public ::testing::TestWithParam<Order> {};

TEST_P(GemmOf, EveryElementIsOneChainOfFusedMultiplyAdds) {
  for (const Shape& shape : kShapes) {
    const Product product(shape, GetParam());
    for (const GemmOptions& options : product.AllOptions()) {
      const std::vector<float> expected = product.Expected(options);
      OnEveryClass(GetParam(), [&] {
        ASSERT_EQ(product.Run(options), expected) << shape.m << " " << shape.n << " " << shape.k;
      });
    }
  }
}

TEST_P(GemmOf, OfATransposedMatrixIsTheSameAndSumsItsColumnsInOrder) {
  for (const Shape& shape : kShapes) {
    const Product product(shape, GetParam());
    BlockedMatrix transposed(shape.k, shape.m, product.precision);
    for (int64_t k = 0; k < shape.k; ++k)
      for (int64_t i = 0; i < shape.m; ++i) transposed.Set(k, i, product.a.at(i, k));
    // Column sums are a product with ones.
    Product ones({shape.m, 1, shape.k}, GetParam());
    ones.a = Blocked(RowMajor(product.a), shape.m, shape.k, product.precision);
    std::fill(ones.b.begin(), ones.b.end(), 1.0f);
    std::vector<float> expected, expected_sums;
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) expected.push_back(product.Chain(i, j, 0));
      expected_sums.push_back(ones.Chain(i, 0, 0));
    }
    // Nothing is written behind C and the sums.
    expected.push_back(9);
    expected_sums.push_back(9);
    OnEveryClass(GetParam(), [&] {
      std::vector<float> c(expected.size(), 9), sums(expected_sums.size(), 9);
      TransposedGemm(transposed, Blocked(product.b, shape.k, shape.n, product.precision),
                     sums.data(), c.data());
      ASSERT_EQ(c, expected) << shape.m << " " << shape.n;
      ASSERT_EQ(sums, expected_sums);
    });
  }
}

TEST(Gemm, OfSmallMatricesInTilesIsTheSame) {
  for (const Shape& shape : kShapes) {
    const Product product(shape, Order::kTiles);
    // A · Aᵀ
    Product gram({shape.m, shape.m, shape.k}, Order::kTiles);
    for (int64_t k = 0; k < shape.k; ++k)
      for (int64_t j = 0; j < shape.m; ++j)
        gram.b[static_cast<size_t>(k * shape.m + j)] = gram.a.at(j, k);
    const BlockedMatrix right = Blocked(product.b, shape.k, shape.n, Precision::kBFloat16);
    const Product* const both[] = {&product, &gram};
    OnEveryClass(Order::kTiles, [&] {
      for (const Product* p : both) {
        const int64_t stride = (p->shape.n + 31) / 16 * 16;
        std::vector<float> c(static_cast<size_t>(shape.m * stride));
        if (p == &gram) {
          GramMatrixInTiles(p->a, c.data(), stride);
        } else {
          SmallGemmInTiles(p->a, right, c.data(), stride);
        }
        for (int64_t i = 0; i < shape.m; ++i)
          for (int64_t j = 0; j < p->shape.n; ++j)
            ASSERT_EQ(c[static_cast<size_t>(i * stride + j)], p->Chain(i, j, 0))
                << shape.m << " " << shape.n << " " << shape.k;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, GemmOf,
                         ::testing::Values(Order::kAscending, Order::kPairs, Order::kTiles));

// Some operands are denormal, and some products and sums of others.
TEST(Gemm, OfBFloat16TakesDenormalNumbersForZero) {
  for (const Order order : {Order::kPairs, Order::kTiles}) {
    OnEveryClass(order, [order] {
      for (const float scale : {0x1p-62f, 0x1p-64f, 0x1p-126f}) {
        const Product product({21, 40, 50}, order, scale);
        for (const GemmOptions& options : product.AllOptions())
          ASSERT_EQ(product.Run(options), product.Expected(options)) << scale;
      }
    });
  }
}

TEST(Gemm, MayRoundItsOperandsButNotItsResult) {
  const int64_t m = 37, n = 19, k = 150;
  for (const Order order : {Order::kPairs, Order::kTiles}) {
    const Product product({m, n, k}, order);
    OnEveryClass(order, [&] {
      BlockedMatrix c(m, n);
      Gemm(product.a, Right(product.b, k, n, product.precision), {.bias = product.bias.data()}, &c);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          ASSERT_EQ(c.at(i, j), product.Chain(i, j, product.bias[static_cast<size_t>(j)]));
    });
  }
}

TEST(RightOperand, CanBeSetFromTheTransposedMatrix) {
  const int64_t rows = 37, columns = 21;
  const std::vector<float> values = RandomValues(rows * columns, 1);
  std::vector<float> transposed;
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r)
      transposed.push_back(values[static_cast<size_t>(r * columns + c)]);
  for (const Order order : {Order::kAscending, Order::kPairs, Order::kTiles}) {
    const Precision precision = Product({1, 1, 1}, order).precision;
    OnEveryClass(order, [&] {
      RightOperand operand(rows, columns, precision);
      for (int64_t block = 0; block < operand.num_blocks(); ++block)
        operand.SetBlockOfTransposed(block, transposed.data());
      EXPECT_EQ(RowMajor(operand.lanes()),
                RowMajor(Right(values, rows, columns, precision).lanes()));
    });
  }
}

TEST(RightOperand, PairsAreTheSameWhenAWeightIsPackedAsAWhole) {
  for (const Order order : {Order::kPairs, Order::kTiles}) {
    OnEveryClass(order, [] {
      for (const auto& [out, in] : {std::pair{1, 1}, {64, 32}, {37, 21}, {16, 48}, {70, 65}}) {
        const std::vector<float> values = RandomValues(static_cast<size_t>(out * in), 1);
        RightOperand straight(out, in, Precision::kBFloat16);
        RightOperand transposed(in, out, Precision::kBFloat16);
        if (!straight.in_pairs()) return;
        for (int64_t row = 0; row < out; row += kPackedRows)
          PackPairs(values.data(), row, &straight, &transposed);
        const RightOperand expected = Right(values, out, in, Precision::kBFloat16);
        EXPECT_EQ(RowMajor(straight.lanes()), RowMajor(expected.lanes())) << out << " " << in;
        RightOperand of_transposed(in, out, Precision::kBFloat16);
        for (int64_t block = 0; block < of_transposed.num_blocks(); ++block)
          of_transposed.SetBlockOfTransposed(block, values.data());
        EXPECT_EQ(RowMajor(transposed.lanes()), RowMajor(of_transposed.lanes()));
      }
    });
  }
}

TEST(Gemm, WithoutFusedMultiplyAddsItIsTheSameUpToRounding) {
  try {
    SelectIsa("sse4");
  } catch (const Error&) {
    GTEST_SKIP() << "this machine has no SSE4";
  }
  const Product product({13, 70, 90}, Order::kAscending);
  for (const GemmOptions& options : product.AllOptions()) {
    const auto result = product.Run(options), expected = product.Expected(options);
    for (size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4);
  }
  SelectIsa("auto");
}

TEST(Gemm, ReluKeepsNan) {
  const std::vector<float> nan = {NAN}, one = {1};
  BlockedMatrix c(1, 1);
  Gemm(Blocked(nan, 1, 1), Right(one, 1, 1, Precision::kFloat32), {.relu = true}, &c);
  EXPECT_TRUE(std::isnan(c.at(0, 0)));
}

}  // namespace
}  // namespace renzan
