#include "renzan/optim/dense_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "renzan/base/random_testing.h"

namespace renzan {
namespace {

struct Case {
  const char* name;
  DenseOptimizerType type;
  double weight_decay;
};

class DenseOptimizers : public testing::TestWithParam<Case> {};

// The textbook formula in double, one element at a time.
TEST_P(DenseOptimizers, AgreesWithTheReferenceOnAnyTeam) {
  const auto [name, type, decay] = GetParam();
  const size_t n = 1003;
  const auto start = RandomValues(n, 1);
  std::vector<float> first;
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    DenseOptimizer optimizer({.type = type, .initial_accumulator = 0.1, .weight_decay = decay}, n);
    std::vector<float> w = start;
    std::vector<double> expected(start.begin(), start.end()),
        a(n, type == DenseOptimizerType::kAdagrad ? 0.1 : 0), b(n);
    for (int64_t step = 0; step < 5; ++step) {
      const auto g = RandomValues(n, 10 + static_cast<uint64_t>(step));
      optimizer.Apply(pool, 0.05, step, g, w);
      for (size_t i = 0; i < n; ++i) {
        const double x = g[i];
        expected[i] -= 0.05 * decay * expected[i];
        if (type == DenseOptimizerType::kSgd) {
          expected[i] -= 0.05 * x;
        } else if (type == DenseOptimizerType::kAdagrad) {
          a[i] += x * x;
          expected[i] -= 0.05 * x / (std::sqrt(a[i]) + 1e-8);
        } else {
          a[i] = 0.9 * a[i] + 0.1 * x;
          b[i] = 0.999 * b[i] + 0.001 * x * x;
          const double t = static_cast<double>(step + 1);
          expected[i] -= 0.05 * (a[i] / (1 - std::pow(0.9, t))) /
                         (std::sqrt(b[i] / (1 - std::pow(0.999, t))) + 1e-8);
        }
      }
    }
    for (size_t i = 0; i < n; ++i) ASSERT_NEAR(w[i], expected[i], 2e-5) << i;
    if (first.empty()) first = w;
    EXPECT_EQ(w, first);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DenseOptimizers,
                         testing::Values(Case{"Sgd", DenseOptimizerType::kSgd, 0},
                                         Case{"Adagrad", DenseOptimizerType::kAdagrad, 0},
                                         Case{"Adam", DenseOptimizerType::kAdam, 0},
                                         Case{"SgdW", DenseOptimizerType::kSgd, 0.5},
                                         Case{"AdagradW", DenseOptimizerType::kAdagrad, 0.5},
                                         Case{"AdamW", DenseOptimizerType::kAdam, 0.5}),
                         [](const auto& info) { return info.param.name; });

// Each group as if it were alone, at its own rate; frozen ones keep every bit.
TEST(DenseOptimizer, GroupsAreTrainedApart) {
  const size_t n = 1003, first = 100, second = 637;
  const auto start = RandomValues(n, 1), gradient = RandomValues(n, 2);
  const auto train = [&](ThreadPool& pool, double rate, std::vector<ParameterGroup> groups) {
    DenseOptimizer optimizer({.type = DenseOptimizerType::kAdam, .weight_decay = 0.1}, n);
    if (!groups.empty()) optimizer.set_groups(std::move(groups));
    std::vector<float> w = start;
    for (int64_t step = 0; step < 3; ++step) optimizer.Apply(pool, rate, step, gradient, w);
    w.insert(w.end(), optimizer.states()[0].values.data(), optimizer.states()[0].values.data() + n);
    return w;
  };
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const auto whole = train(pool, 0.25, {}), half = train(pool, 0.125, {});
    const auto mixed = train(
        pool, 0.25,
        {{.end = first}, {.end = second, .frozen = true}, {.end = n, .learning_rate_factor = 0.5}});
    for (size_t i = 0; i < n; ++i) {
      const bool frozen = i >= first && i < second;
      ASSERT_EQ(mixed[i], frozen ? start[i] : i < first ? whole[i] : half[i]) << i;
      ASSERT_EQ(mixed[n + i], frozen ? 0.0f : whole[n + i]) << i;
    }
  }
  DenseOptimizer optimizer({}, n);
  optimizer.set_groups({{.end = first}, {.end = n, .frozen = true}});
  std::vector<float> cleared = gradient;
  optimizer.ClearFrozen(cleared);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(cleared[i], i < first ? gradient[i] : 0.0f) << i;
}

}  // namespace
}  // namespace renzan
