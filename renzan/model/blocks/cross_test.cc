#include "renzan/model/blocks/cross.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/model/blocks/block_testing.h"

namespace renzan {
namespace {

TEST(CrossBlock, ComputesItsDefinition) {
  for (const int64_t rank : {0, 2}) {
    BlockAlone cross(Cross{.layers = 2, .rank = rank}, {{{"x", 2}, {"z", 3}}});
    const std::vector<float> y = cross.Output();
    for (size_t sample = 0; sample < 4; ++sample) {
      const std::vector<double> x0(cross.inputs[0].begin() + sample * 5,
                                   cross.inputs[0].begin() + sample * 5 + 5);
      std::vector<double> x = x0;
      const auto product = [](std::span<const float> matrix, const std::vector<double>& by) {
        std::vector<double> result;
        for (size_t row = 0; row * by.size() < matrix.size(); ++row) {
          result.push_back(0);
          for (size_t i = 0; i < by.size(); ++i)
            result.back() += double{matrix[row * by.size() + i]} * by[i];
        }
        return result;
      };
      for (int layer = 0; layer < 2; ++layer) {
        const auto of = [&](const char* name) {
          return cross.parameter(fmt::format("{}.{}", layer, name));
        };
        std::vector<double> crossed = product(of("w"), rank == 0 ? x : product(of("v"), x));
        for (size_t i = 0; i < 5; ++i) x[i] += x0[i] * (crossed[i] + double{of("bias")[i]});
      }
      for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(double{y[sample * 5 + i]}, x[i], 1e-5);
    }
  }
}

TEST(CrossBlock, GradientsAgreeWithFiniteDifferences) {
  for (const int64_t rank : {0, 3})
    BlockAlone(Cross{.layers = 3, .rank = rank}, {{{"x", 5}}}).ExpectGradients();
}

TEST(CrossBlock, WithoutLayersIsTheIdentity) {
  BlockAlone cross(Cross{.layers = 0}, {{{"x", 5}}});
  EXPECT_EQ(cross.Output(), cross.inputs[0]);
  cross.ExpectGradients();
}

std::vector<double> ProductOf(std::span<const float> matrix, const std::vector<double>& by) {
  std::vector<double> result(matrix.size() / by.size());
  for (size_t i = 0; i < matrix.size(); ++i)
    result[i / by.size()] += double{matrix[i]} * by[i % by.size()];
  return result;
}

TEST(CrossOfExperts, ComputesItsDefinition) {
  BlockAlone cross(Cross{.layers = 2, .rank = 3, .experts = 2}, {{{"x", 2}, {"z", 3}}});
  const std::vector<float> y = cross.Output();
  for (size_t sample = 0; sample < 4; ++sample) {
    const std::vector<double> x0(cross.inputs[0].begin() + sample * 5,
                                 cross.inputs[0].begin() + sample * 5 + 5);
    std::vector<double> x = x0;
    for (int layer = 0; layer < 2; ++layer) {
      const auto of = [&](const std::string& name) {
        return cross.parameter(fmt::format("{}.{}", layer, name));
      };
      const std::vector<double> logits = ProductOf(of("gate"), x);
      const double sum = std::exp(logits[0]) + std::exp(logits[1]);
      std::vector<double> mixed(of("bias").begin(), of("bias").end());
      for (size_t e = 0; e < 2; ++e) {
        std::vector<double> low = x;
        for (const char* matrix : {"v", "c"}) {
          low = ProductOf(of(fmt::format("{}.{}", e, matrix)), low);
          for (double& value : low) value = std::tanh(value);
        }
        const std::vector<double> high = ProductOf(of(fmt::format("{}.w", e)), low);
        for (size_t i = 0; i < 5; ++i) mixed[i] += std::exp(logits[e]) / sum * high[i];
      }
      for (size_t i = 0; i < 5; ++i) x[i] += x0[i] * mixed[i];
    }
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(double{y[sample * 5 + i]}, x[i], 1e-5);
  }
}

TEST(CrossOfExperts, GradientsAgreeWithFiniteDifferences) {
  BlockAlone cross(Cross{.layers = 2, .rank = 3, .experts = 2}, {{{"x", 5}}}, 8);
  // Small enough that rounding does not hide what the second layer's tanh let through.
  for (float& value : cross.inputs[0]) value *= 0.4f;
  cross.ExpectGradients();
}

TEST(VectorCross, ComputesItsDefinition) {
  BlockAlone cross(Cross{.layers = 2, .kind = "vector"}, {{{"x", 2}, {"z", 18}}});
  const std::vector<float> y = cross.Output();
  for (size_t sample = 0; sample < 4; ++sample) {
    const std::vector<double> x0(cross.inputs[0].begin() + sample * 20,
                                 cross.inputs[0].begin() + sample * 20 + 20);
    std::vector<double> x = x0;
    for (int layer = 0; layer < 2; ++layer) {
      const auto w = cross.parameter(fmt::format("{}.w", layer));
      const auto bias = cross.parameter(fmt::format("{}.bias", layer));
      double weight = 0;
      for (size_t i = 0; i < 20; ++i) weight += double{w[i]} * x[i];
      for (size_t i = 0; i < 20; ++i) x[i] += x0[i] * weight + double{bias[i]};
    }
    for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(double{y[sample * 20 + i]}, x[i], 1e-5);
  }
}

TEST(VectorCross, GradientsAgreeWithFiniteDifferences) {
  BlockAlone(Cross{.layers = 3, .kind = "vector"}, {{{"x", 5}}}).ExpectGradients();
  BlockAlone identity(Cross{.layers = 0, .kind = "vector"}, {{{"x", 5}}});
  EXPECT_EQ(identity.Output(), identity.inputs[0]);
  identity.ExpectGradients();
}

}  // namespace
}  // namespace renzan
