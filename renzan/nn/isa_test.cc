#include "renzan/nn/isa.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/elementwise.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

// The results of all element-wise operations, one after another.
std::vector<float> ElementwiseResults(Precision precision) {
  const int64_t rows = 3, columns = 103;
  const auto random = [&](uint64_t seed) {
    return Blocked(RandomValues(static_cast<size_t>(rows * columns), seed), rows, columns,
                   precision);
  };
  const BlockedMatrix a = random(1), b = random(2), c = random(3);
  BlockedMatrix y(rows, columns, precision);
  Multiply(a, b, &y);
  MultiplyAdd(a, y, c, &y);
  Add(b, &y);
  ReluBackward(a, &y);
  return RowMajor(y);
}

TEST(CheckProcessor, RefusesOneThatNoClassIsFor) {
  CheckProcessor(hwy::SupportedTargets());
  for (const int64_t targets : {int64_t{0}, int64_t{HWY_SCALAR}, int64_t{HWY_SSSE3 | HWY_EMU128}}) {
    try {
      CheckProcessor(targets);
      ADD_FAILURE() << targets;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_NE(std::string(error.what()).find("use a newer machine"), std::string::npos);
    }
  }
}

TEST(SelectIsa, ElementwiseBitsDoNotDependOnIt) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    SelectIsa("auto");
    const std::vector<float> expected = ElementwiseResults(precision);
    int tried = 0;
    for (const char* name : {"avx512_bf16", "avx512", "avx2", "sse4", "neon"}) {
      try {
        EXPECT_EQ(SelectIsa(name), name);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kConfig);  // not supported by this machine
        continue;
      }
      ++tried;
      EXPECT_EQ(ElementwiseResults(precision), expected) << name;
    }
    EXPECT_GE(tried, 1);
    SelectIsa("auto");
  }
}

TEST(SelectIsa, SomeClassesHaveTheSameBits) {
  using enum Precision;
  for (const Precision precision : {kFloat32, kBFloat16}) {
    EXPECT_TRUE(HasSameBits("sse4", "sse4", precision));
    EXPECT_FALSE(HasSameBits("avx2", "sse4", precision));
    EXPECT_TRUE(HasSameBits("avx2", "avx512", precision));
    EXPECT_TRUE(HasSameBits("avx512_bf16", "avx512", precision));
    EXPECT_TRUE(HasSameBits("amx", "amx", precision));
  }
  EXPECT_TRUE(HasSameBits("amx", "avx2", kFloat32));
  EXPECT_FALSE(HasSameBits("amx", "avx2", kBFloat16));
}

TEST(Elementwise, OperationsOnBFloat16RoundTheirResultOnce) {
  const auto value = [](float x) { return Blocked({&x, 1}, 1, 1, Precision::kBFloat16); };
  const float x = 1.0078125f, y = 3.015625f;  // exact in bfloat16, their product is not
  BlockedMatrix out(1, 1, Precision::kBFloat16);
  MultiplyAdd(value(x), value(y), value(-3), &out);
  EXPECT_EQ(out.at(0, 0), FromBFloat16(ToBFloat16(x * y - 3)));
}

TEST(SelectIsa, ErrorsListTheSupportedClasses) {
  try {
    SelectIsa("avx9");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(std::string(error.what()).find("auto"), std::string::npos);
  }
}

}  // namespace
}  // namespace renzan
