#include "renzan/comm/reduce_op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

template <class T>
std::vector<T> Combined(ElementType type, ReduceOp op, std::vector<T> sum, std::vector<T> term) {
  Combine(type, op)(reinterpret_cast<std::byte*>(sum.data()),
                    reinterpret_cast<const std::byte*>(term.data()), sum.size());
  return sum;
}

TEST(ReduceOpTest, CombinesEveryType) {
  using I = std::vector<int32_t>;
  const I a = {5, -3, 7}, b = {2, 4, 7};
  const ElementType type = ElementType::kInt32;
  EXPECT_EQ(Combined(type, ReduceOp::kSum, a, b), (I{7, 1, 14}));
  EXPECT_EQ(Combined(type, ReduceOp::kProduct, a, b), (I{10, -12, 49}));
  EXPECT_EQ(Combined(type, ReduceOp::kMin, a, b), (I{2, -3, 7}));
  EXPECT_EQ(Combined(type, ReduceOp::kMax, a, b), (I{5, 4, 7}));
  EXPECT_EQ(Combined(type, ReduceOp::kBitAnd, a, b), (I{0, 4, 7}));
  EXPECT_EQ(Combined(type, ReduceOp::kBitOr, a, b), (I{7, -3, 7}));
  EXPECT_EQ(Combined(type, ReduceOp::kBitXor, a, b), (I{7, -7, 0}));
  EXPECT_EQ(Combined<double>(ElementType::kFloat64, ReduceOp::kProduct, {1.5}, {-2}),
            (std::vector<double>{-3}));
  EXPECT_EQ(Combined<uint8_t>(ElementType::kUInt8, ReduceOp::kMax, {200}, {7}),
            (std::vector<uint8_t>{200}));
}

TEST(ReduceOpTest, IntegersWrapAround) {
  constexpr auto kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Combined<int64_t>(ElementType::kInt64, ReduceOp::kSum, {kMost}, {1}),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(Combined<int8_t>(ElementType::kInt8, ReduceOp::kProduct, {100}, {3}),
            (std::vector<int8_t>{44}));
}

TEST(ReduceOpTest, SixteenBitsAreCombinedInFloat32) {
  for (const auto& [type, codec] : {std::pair(ElementType::kFloat16, FloatType::kFloat16),
                                    std::pair(ElementType::kBFloat16, FloatType::kBFloat16)}) {
    std::vector<float> a(700), b(700);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = std::sin(static_cast<float>(i)) * 100;
      b[i] = std::cos(static_cast<float>(3 * i));
    }
    RoundTrip(codec, a);
    RoundTrip(codec, b);
    std::vector<std::byte> sum(2 * a.size()), term(2 * a.size());
    Encode(codec, a, sum.data());
    Encode(codec, b, term.data());
    Combine(type, ReduceOp::kSum)(sum.data(), term.data(), a.size());
    std::vector<float> got(a.size());
    Decode(codec, sum.data(), got);
    AddRoundTrip(codec, a, b);
    EXPECT_EQ(got, a);
  }
}

TEST(ReduceOpTest, NanWinsInMinAndMax) {
  const float nan = std::nanf("");
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(Combined<float>(ElementType::kFloat32, op, {nan}, {1})[0]));
    EXPECT_TRUE(std::isnan(Combined<float>(ElementType::kFloat32, op, {1}, {nan})[0]));
  }
}

TEST(ReduceOpTest, ThereAreNoBitwiseOperationsOnFloats) {
  for (const ReduceOp op : {ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor})
    for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64,
                                   ElementType::kFloat16, ElementType::kBFloat16})
      EXPECT_EQ(Combine(type, op), nullptr);
}

}  // namespace
}  // namespace renzan
