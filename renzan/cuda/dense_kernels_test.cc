#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "renzan/cuda/dense_optimizer.cuh"
#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/testing.h"
#include "renzan/model/loss.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan::cuda {
namespace {

class DenseKernels : public OnGpu, public ::testing::WithParamInterface<Precision> {
 protected:
  Precision precision() const { return GetParam(); }
  float Round(float value) const {
    return precision() == Precision::kBFloat16 ? FromBFloat16(ToBFloat16(value)) : value;
  }
  // Representable in the precision.
  std::vector<float> Values(int64_t n, uint64_t seed) const {
    std::vector<float> values = Floats(n, seed);
    for (float& value : values) value = Round(value);
    return values;
  }
  DeviceMemory ToDevice(const std::vector<float>& values) const {
    return CopiedToGpu(values, precision());
  }
  DeviceMemory Poisoned(int64_t n) const {
    return ToDevice(std::vector<float>(static_cast<size_t>(n), NAN));
  }
  std::vector<float> ToHost(const DeviceMemory& memory) const {
    return CopiedFromGpu(memory, precision());
  }
  std::byte* At(const DeviceMemory& memory, int64_t index) const {
    return memory.as<std::byte>() + index * (precision() == Precision::kBFloat16 ? 2 : 4);
  }
};

DeviceMemory FloatsOnDevice(const std::vector<float>& values) {
  return CopiedToGpu(values, Precision::kFloat32);
}
DeviceMemory PoisonedFloats(int64_t n) {
  return FloatsOnDevice(std::vector<float>(static_cast<size_t>(n), NAN));
}
std::vector<float> FloatsOf(const DeviceMemory& memory) {
  return CopiedFromGpu(memory, Precision::kFloat32);
}

// ---- Masks and sums of columns ----

TEST_P(DenseKernels, MaskAndSumColumnsOfEachVirtualWorker) {
  constexpr int kBatches = 8;
  const auto check = [&](int64_t rows, int64_t columns, bool mask, float scale = 1) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", mask " << mask << scale);
    const int64_t of_batch = rows * columns, stride = columns + 24;
    std::vector<float> y = Values(kBatches * of_batch, 3), dy = Values(kBatches * of_batch, 4);
    for (size_t i = 0; i < y.size(); i += 7) y[i] = 0;
    // The gradients and the sums of virtual workers [first, first + n).
    const auto run = [&](int first, int n) {
      const DeviceMemory activations = ToDevice(y), gradients = ToDevice(dy);
      const DeviceMemory sums = PoisonedFloats(kBatches * stride);
      const ColumnSums scratch({n, rows, columns, precision()});
      MaskAndSumColumns({n, rows, columns, precision()},
                        mask ? At(activations, first * of_batch) : nullptr, scale,
                        At(gradients, first * of_batch), scratch, sums.as<float>() + first * stride,
                        stride, nullptr);
      return std::pair(ToHost(gradients), FloatsOf(sums));
    };
    const auto [masked, sums] = run(0, kBatches);

    std::vector<float> expected = dy;
    std::vector<double> expected_sums(static_cast<size_t>(kBatches * columns));
    std::vector<float> own_sums;
    for (size_t i = 0; i < dy.size(); ++i) {
      if (mask) expected[i] = y[i] > 0 ? Round(scale * dy[i]) : 0;
      const int64_t batch = static_cast<int64_t>(i) / of_batch;
      expected_sums[static_cast<size_t>(batch * columns + static_cast<int64_t>(i) % columns)] +=
          expected[i];
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      if (static_cast<int64_t>(i) % stride < columns) {
        own_sums.push_back(sums[i]);
      } else {
        EXPECT_TRUE(std::isnan(sums[i])) << i;
      }
    }
    ExpectSameBits(masked, expected);
    ExpectNear(own_sums, expected_sums, kSumTolerance, 1e-5);

    for (const int batch : {0, 3, kBatches - 1}) {
      const auto of = [&](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + batch * stride,
                                  all.begin() + batch * stride + columns);
      };
      ExpectSameBits(of(run(batch, 1).second), of(sums));
    }
  };
  for (const bool mask : {false, true}) {
    check(1, 8, mask);
    check(50, 16, mask);
    check(1500, 8, mask);
    check(1030, 128, mask);
    check(100, 480, mask);
    check(3, 40, mask);
  }
  check(1030, 128, true, 1.25f);
  check(50, 8, true, 2);
}

// ---- Copies ----

TEST_P(DenseKernels, CopyColumnsLeavesTheOthers) {
  const auto check = [&](int64_t columns, int64_t from_stride, int64_t to_stride) {
    constexpr int64_t kRows = 301;
    const std::vector<float> from = Values(kRows * from_stride, 5);
    std::vector<float> expected = Values(kRows * to_stride, 6);
    const DeviceMemory to = ToDevice(expected), source = ToDevice(from);
    CopyColumns(kRows, columns, source.as<void>(), from_stride, to.as<void>(), to_stride,
                precision(), nullptr);
    for (int64_t r = 0; r < kRows; ++r)
      std::copy_n(from.begin() + r * from_stride, columns, expected.begin() + r * to_stride);
    ExpectSameBits(ToHost(to), expected);
  };
  check(128, 128, 27 * 128);
  check(16, 48, 16);
  check(480, 480, 488);
  check(479, 479, 480);
  check(13, 13, 16);
  check(1, 8, 1);
}

TEST_P(DenseKernels, ConvertRowsFillsUpWithZeros) {
  const auto check = [&](int64_t columns, int64_t from_stride, int64_t to_stride) {
    constexpr int64_t kRows = 301;
    const std::vector<float> from = Floats(kRows * from_stride, 7);
    const DeviceMemory to = Poisoned(kRows * to_stride), source = FloatsOnDevice(from);
    ConvertRows(kRows, columns, source.as<float>(), from_stride, to.as<void>(), to_stride,
                precision(), nullptr);
    std::vector<float> expected(static_cast<size_t>(kRows * to_stride));
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        expected[static_cast<size_t>(r * to_stride + c)] =
            Round(from[static_cast<size_t>(r * from_stride + c)]);
    ExpectSameBits(ToHost(to), expected);
  };
  check(13, 13, 16);
  check(479, 480, 480);
  check(128, 128, 128);
  check(13, 16, 13);
  check(5, 8, 24);
}

// ---- The cross network, sums, the loss ----

// Sizes that are and are not multiples of what a thread handles, and one that takes several turns.
constexpr int64_t kSizes[] = {1, 8, 1003, 4096, 2400000};

TEST_P(DenseKernels, CrossForwardRoundsProductsAndSums) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x0 = Values(n, 8), crossed = Values(n, 9), x = Values(n, 10);
    const DeviceMemory a = ToDevice(x0), b = ToDevice(crossed), c = ToDevice(x), out = Poisoned(n);
    CrossForward(n, precision(), a.as<void>(), b.as<void>(), c.as<void>(), out.as<void>(), nullptr);
    std::vector<float> expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const float product = x0[i] * crossed[i];
      expected[i] = Round(product + x[i]);
    }
    ExpectSameBits(ToHost(out), expected);
  }
}

TEST_P(DenseKernels, CrossBackwardAddsWhatItIsToldAndSumsColumns) {
  const ColumnSums scratch({.batches = 2, .rows = 600, .columns = 3456, .precision = precision()});
  for (const int64_t columns : {3456, 8, 40, 600}) {
    for (const CrossGradient of :
         {CrossGradient{false, false}, {true, false}, {true, true}, {false, true}}) {
      const MatrixShape shape = {
          .batches = 2, .rows = 600, .columns = columns, .precision = precision()};
      const int64_t n = shape.batches * shape.rows * columns;
      const std::vector<float> dy = Values(n, 11), x0 = Values(n, 12), crossed = Values(n, 13);
      const std::vector<float> before =
          of.accumulate ? Values(n, 14) : std::vector<float>(static_cast<size_t>(n), NAN);
      const DeviceMemory d = ToDevice(dy), a = ToDevice(x0), b = ToDevice(crossed);
      const DeviceMemory d_crossed = Poisoned(n), d_x0 = ToDevice(before);
      const DeviceMemory d_bias = PoisonedFloats(2 * columns), alone = PoisonedFloats(2 * columns);
      CrossBackward(shape, d.as<void>(), a.as<void>(), b.as<void>(), of, d_crossed.as<void>(),
                    d_x0.as<void>(), scratch, d_bias.as<float>(), columns, nullptr);
      std::vector<float> expected(dy.size()), expected_x0(dy.size());
      for (size_t i = 0; i < dy.size(); ++i) {
        expected[i] = Round(dy[i] * x0[i]);
        const float product = dy[i] * crossed[i];
        const float sum = product + (of.accumulate ? before[i] : 0.0f);
        expected_x0[i] = Round(of.residual ? sum + dy[i] : sum);
      }
      ExpectSameBits(ToHost(d_crossed), expected);
      ExpectSameBits(ToHost(d_x0), expected_x0);
      MaskAndSumColumns(shape, nullptr, 1, d_crossed.as<void>(), scratch, alone.as<float>(),
                        columns, nullptr);
      ExpectSameBits(FloatsOf(d_bias), FloatsOf(alone));
    }
  }
}

TEST_P(DenseKernels, LossGradientIsInColumnZero) {
  for (const int64_t stride : {1, 8, 16, 40}) {
    constexpr int64_t kSamples = 777, kGlobalBatch = 3000;
    std::vector<float> output(static_cast<size_t>(kSamples * stride), NAN), logits, labels;
    std::vector<double> expected(output.size());
    for (int64_t s = 0; s < kSamples; ++s) {
      const size_t at = static_cast<size_t>(s * stride);
      const float logit = static_cast<float>(s - kSamples / 2) / 4, label = s % 3 == 0 ? 1 : 0;
      output[at] = logit;
      logits.push_back(logit);
      labels.push_back(label);
      expected[at] = (double{Sigmoid(logit)} - label) / kGlobalBatch;
    }
    const DeviceMemory in = FloatsOnDevice(output), y = FloatsOnDevice(labels);
    const DeviceMemory copy = PoisonedFloats(kSamples), gradient = Poisoned(kSamples * stride);
    LossGradient(kSamples, stride, in.as<float>(), y.as<float>(), kGlobalBatch, precision(),
                 copy.as<float>(), gradient.as<void>(), nullptr);
    ExpectSameBits(FloatsOf(copy), logits);
    const std::vector<float> got = ToHost(gradient);
    const bool half = precision() == Precision::kBFloat16;
    ExpectNear(got, expected, 1e-6 / kGlobalBatch, half ? kBFloat16Rounding : 1e-6);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i] == 0.0f || static_cast<int64_t>(i) % stride == 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, DenseKernels, kBothPrecisions);

class DenseKernelsOfFloats : public OnGpu {};

// ---- Parameters ----

// Weights and biases, some with rows of odd length, and one that takes the threads several turns.
struct Places {
  std::vector<ParameterPlace> all;
  int64_t flat = 0, padded = 0, largest = 0;

  explicit Places(int64_t rows_of_largest) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{512, 13},
                                        {1, 512},
                                        {100, 479},
                                        {1, 1},
                                        {1, 256},
                                        {3, 40},
                                        {rows_of_largest, 512},
                                        {7, 9}}) {
      const int64_t stride = (columns + 7) / 8 * 8;
      all.push_back({flat, rows, columns, padded, stride});
      flat += (rows * columns + 15) / 16 * 16;
      padded += (rows * stride + 127) / 128 * 128;
      largest = std::max(largest, rows * columns);
    }
  }
  DeviceMemory CopiedToGpu() const {
    DeviceMemory memory(all.size() * sizeof(ParameterPlace));
    Check(cudaMemcpy(memory.as<void>(), all.data(), memory.bytes(), cudaMemcpyHostToDevice),
          "test");
    return memory;
  }
  // Calls body(index in flat, index in padded).
  void ForAll(const std::function<void(size_t, size_t)>& body) const {
    for (const ParameterPlace& place : all)
      for (int64_t r = 0; r < place.rows; ++r)
        for (int64_t c = 0; c < place.columns; ++c)
          body(static_cast<size_t>(place.offset + r * place.columns + c),
               static_cast<size_t>(place.padded_offset + r * place.stride + c));
  }
};

TEST_P(DenseKernels, PackParametersLeavesThePadding) {
  const Places places(2200);
  const std::vector<float> flat = Floats(places.flat, 18);
  std::vector<float> expected = Values(places.padded, 19);
  const DeviceMemory on_device = places.CopiedToGpu(), from = FloatsOnDevice(flat);
  const DeviceMemory weights = ToDevice(expected);
  PackParameters(on_device.as<ParameterPlace>(), static_cast<int>(places.all.size()),
                 places.largest, from.as<float>(), precision(), weights.as<void>(), nullptr);
  places.ForAll([&](size_t i, size_t padded) { expected[padded] = Round(flat[i]); });
  ExpectSameBits(ToHost(weights), expected);
}

float BalancedSum(const std::function<float(int64_t)>& value, int64_t begin, int64_t n) {
  if (n == 1) return value(begin);
  return BalancedSum(value, begin, n / 2) + BalancedSum(value, begin + n / 2, n / 2);
}

TEST_F(DenseKernelsOfFloats, SumGradientsByTheBalancedTree) {
  const Places places(100);
  for (const int batches : {1, 2, 4, 8, 16, 32, 128}) {
    const int64_t n = places.padded;
    std::vector<float> gradients = Floats(batches * n, 20);
    const DeviceMemory on_device = places.CopiedToGpu(), from = FloatsOnDevice(gradients);
    std::vector<float> expected(static_cast<size_t>(places.flat), -1.0f);
    const DeviceMemory flat = FloatsOnDevice(expected);
    SumGradients(on_device.as<ParameterPlace>(), static_cast<int>(places.all.size()),
                 places.largest, batches, from.as<float>(), n, flat.as<float>(), nullptr);
    places.ForAll([&](size_t i, size_t padded) {
      expected[i] = BalancedSum(
          [&](int64_t v) { return gradients[static_cast<size_t>(v * n) + padded]; }, 0, batches);
    });
    ExpectSameBits(FloatsOf(flat), expected);
  }
}

// ---- The dense optimizer ----

TEST_F(DenseKernelsOfFloats, OptimizersHaveTheBitsOfTheCpu) {
  for (const int64_t n : {1, 1003, 1500000}) {
    for (const float kept : {1.0f, 0.99f}) {
      const std::vector<float> g = Floats(n, 21);
      std::vector<float> squares = Floats(n, 22);
      for (float& x : squares) x *= x;
      const auto check = [&](DenseOptimizerType type, const auto& step_on_cpu) {
        std::vector<float> w = Floats(n, 23), s1 = squares, s2 = squares;
        if (type == DenseOptimizerType::kAdam) s1 = Floats(n, 24);
        const DenseStep step = {
            .lr = 0.01f, .epsilon = 1e-8f, .kept = kept, .adam = {0.01, 1e-8, 0.9, 0.999, 3}};
        DeviceMemory step_on_device(sizeof(step));
        Check(cudaMemcpy(step_on_device.as<void>(), &step, sizeof(step), cudaMemcpyHostToDevice),
              "test");
        const DeviceMemory gradient = FloatsOnDevice(g), weights = FloatsOnDevice(w);
        const DeviceMemory state1 = FloatsOnDevice(s1), state2 = FloatsOnDevice(s2);
        const DeviceMemory finite = FloatsOnDevice({std::bit_cast<float>(1)});
        const bool adam = type == DenseOptimizerType::kAdam;
        const bool sgd = type == DenseOptimizerType::kSgd;
        ApplyDenseOptimizer(type, step_on_device.as<DenseStep>(), n, gradient.as<float>(),
                            sgd ? nullptr : state1.as<float>(), adam ? state2.as<float>() : nullptr,
                            weights.as<float>(), finite.as<int32_t>(), nullptr);
        EXPECT_EQ(std::bit_cast<int32_t>(FloatsOf(finite)[0]), 1);
        if (kept != 1) ScaleValues(kept, n, w.data());
        step_on_cpu(step, s1.data(), s2.data(), w.data());
        ExpectSameBits(FloatsOf(weights), w);
        ExpectSameBits(FloatsOf(state1), s1);
        ExpectSameBits(FloatsOf(state2), s2);
      };
      check(DenseOptimizerType::kSgd, [&](const DenseStep& step, float*, float*, float* w) {
        SgdStep(step.lr, g.data(), n, w);
      });
      check(DenseOptimizerType::kAdagrad, [&](const DenseStep& step, float* s, float*, float* w) {
        AdagradStep(step.lr, step.epsilon, g.data(), n, s, w);
      });
      check(DenseOptimizerType::kAdam, [&](const DenseStep& step, float* m, float* v, float* w) {
        AdamStep(step.adam, g.data(), n, m, v, w);
      });
    }
  }
}

TEST_F(DenseKernelsOfFloats, TheOptimizerReportsOneValueOfManyThatIsNotFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const int64_t n : {1, 5, 4096, 3000001}) {
    const auto finite = [&](int64_t at, float parameter, float state, float gradient) {
      std::vector<float> w = Floats(n, 17), s = w, g(w.size());
      for (float& x : s) x *= x;
      w[static_cast<size_t>(at)] = parameter;
      s[static_cast<size_t>(at)] = state;
      g[static_cast<size_t>(at)] = gradient;
      const DenseStep step = {
          .lr = 0.01f, .epsilon = 1e-8f, .kept = 1, .adam = {0.01, 1e-8, 0.9, 0.999, 3}};
      DeviceMemory step_on_device(sizeof(step));
      Check(cudaMemcpy(step_on_device.as<void>(), &step, sizeof(step), cudaMemcpyHostToDevice),
            "test");
      const DeviceMemory weights = FloatsOnDevice(w), states = FloatsOnDevice(s);
      const DeviceMemory gradients = FloatsOnDevice(g);
      const DeviceMemory flag = FloatsOnDevice({std::bit_cast<float>(1)});
      ApplyDenseOptimizer(DenseOptimizerType::kAdagrad, step_on_device.as<DenseStep>(), n,
                          gradients.as<float>(), states.as<float>(), nullptr, weights.as<float>(),
                          flag.as<int32_t>(), nullptr);
      return std::bit_cast<int32_t>(FloatsOf(flag)[0]);
    };
    EXPECT_EQ(finite(0, kMax, kMax, 0), 1);
    EXPECT_EQ(finite(n - 1, NAN, 1, 0), 0);
    EXPECT_EQ(finite(0, 1, INFINITY, 0), 0);
    EXPECT_EQ(finite(n / 2, 1, 1, -kMax), 0);  // its square is not finite
    EXPECT_EQ(finite(n / 2, -INFINITY, 1, 0), 0);
  }
}

}  // namespace
}  // namespace renzan::cuda
