#include "renzan/nn/isa.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/elementwise.h"

namespace renzan {
namespace {

// The results of all element-wise operations, on arrays with a tail.
std::vector<float> ElementwiseResults() {
  const size_t n = 103;
  auto y = RandomValues(3 * n, 1), d = RandomValues(3 * n, 2);
  const auto bias = RandomValues(n, 3);
  std::vector<float> sum(n);
  AddBiasRelu(y.data(), 3, n, n, bias.data());
  ReluBackward(y.data(), n, d.data(), n, 3, n);
  SumRows(d.data(), 3, n, n, sum.data());
  MultiplyAdd(y.data(), d.data(), y.data() + n, n);
  std::vector<float> all = y;
  all.insert(all.end(), sum.begin(), sum.end());
  return all;
}

TEST(SelectIsa, ElementwiseBitsDoNotDependOnIt) {
  SelectIsa("auto");
  const std::vector<float> expected = ElementwiseResults();
  int tried = 0;
  for (const char* name : {"avx512", "avx2", "sse4", "neon"}) {
    try {
      EXPECT_EQ(SelectIsa(name), name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);  // not on this machine
      continue;
    }
    ++tried;
    EXPECT_EQ(ElementwiseResults(), expected) << name;
  }
  EXPECT_GE(tried, 1);
  SelectIsa("auto");
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
