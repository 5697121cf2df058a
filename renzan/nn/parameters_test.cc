#include "renzan/nn/parameters.h"

#include <gtest/gtest.h>

#include "renzan/tensor/aligned_buffer.h"

namespace renzan {
namespace {

TEST(Parameters, InitialValuesHaveTheStatedSpread) {
  ParameterLayout layout;
  layout.Add("w", {300, 200}, Initializer::kXavierNormal);
  AlignedBuffer values(static_cast<size_t>(layout.size()));
  layout.Initialize(1, values.span());
  double squares = 0;
  for (float v : values.span()) squares += double{v} * double{v};
  EXPECT_NEAR(squares / 60000, 2.0 / 500, 1e-4);
}

TEST(Parameters, AVarianceMayBeStated) {
  ParameterLayout layout;
  layout.AddNormal("w", {300, 200}, 0.25);
  AlignedBuffer values(static_cast<size_t>(layout.size()));
  layout.Initialize(1, values.span());
  double squares = 0;
  for (float v : values.span()) squares += double{v} * double{v};
  EXPECT_NEAR(squares / 60000, 0.25, 0.01);
}

}  // namespace
}  // namespace renzan
