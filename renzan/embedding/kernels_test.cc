#include "renzan/embedding/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/base/random_testing.h"
#include "renzan/embedding/memory_row_store.h"
#include "renzan/embedding/testing.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/tensor/simd_testing.h"

namespace renzan {
namespace {

constexpr size_t kRows = 10;

// Bags of a few lengths: empty ones, first and last too, and one longer than rows are prefetched.
const std::vector<int32_t> kOffsets = {0, 0, 1, 5, 5, 12, 62, 62};

std::vector<int32_t> Ids() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kOffsets.back(); ++i) ids.push_back(i * i * 7 % int32_t{kRows});
  return ids;
}

// Rows looked up once, twice and often, by samples in any order.
const std::vector<Lookup> kLookups = {
    MakeLookup(1, 4), MakeLookup(3, 0), MakeLookup(3, 5), MakeLookup(4, 1), MakeLookup(8, 0),
    MakeLookup(8, 1), MakeLookup(8, 2), MakeLookup(8, 2), MakeLookup(8, 5), MakeLookup(9, 3)};
constexpr size_t kSamples = 6;
// Which virtual worker each sample belongs to.
const std::vector<uint16_t> kVirtualWorker = {0, 0, 1, 2, 2, 3};

RowGradients GradientsOf(const std::vector<float>& pooled) {
  return {.lookups = kLookups, .pooled = pooled.data(), .virtual_worker = kVirtualWorker.data()};
}

// The gradient of each row, by definition: a virtual worker without lookups counts as zeros.
std::map<size_t, std::vector<float>> GradientOfEachRow(const std::vector<float>& pooled,
                                                       size_t dim) {
  std::map<size_t, std::vector<std::vector<float>>> leaves;
  for (const Lookup lookup : kLookups) {
    auto& of_row = leaves[RowOf(lookup)];
    of_row.resize(4, std::vector<float>(dim));
    for (size_t d = 0; d < dim; ++d)
      of_row[kVirtualWorker[SampleOf(lookup)]][d] += pooled[SampleOf(lookup) * dim + d];
  }
  std::map<size_t, std::vector<float>> sums;
  for (const auto& [row, v] : leaves) {
    sums[row].resize(dim);
    for (size_t d = 0; d < dim; ++d) sums[row][d] = (v[0][d] + v[1][d]) + (v[2][d] + v[3][d]);
  }
  return sums;
}

constexpr SparseOptimizerType kOptimizers[] = {SparseOptimizerType::kSgd,
                                               SparseOptimizerType::kAdagrad,
                                               SparseOptimizerType::kRowWiseAdagrad,
                                               SparseOptimizerType::kAdam,
                                               SparseOptimizerType::kMomentum,
                                               SparseOptimizerType::kFtrl};
constexpr FloatType kTypes[] = {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16};

MemoryRowStore NewRows(FloatType type, size_t dim, size_t state_width = 0) {
  MemoryRowStore rows(
      {.layout = {type, static_cast<int64_t>(dim), static_cast<int64_t>(state_width)},
       .rows = kRows});
  rows.SetWeights(0, RandomValues(kRows * dim, 1));
  std::vector<float> state = RandomValues(kRows * state_width, 2);
  for (float& s : state) s = s * s;
  rows.SetState(0, state);
  return rows;
}

size_t StateWidth(SparseOptimizerType optimizer, size_t dim) {
  return static_cast<size_t>(StateFloatsPerRow(optimizer, static_cast<int64_t>(dim)));
}

class Kernels : public ::testing::TestWithParam<int64_t> {
 protected:
  const int64_t dim_ = GetParam();
  const size_t width_ = static_cast<size_t>(dim_);
};

TEST_P(Kernels, GatheringCopiesRows) {
  for (const FloatType type : kTypes) {
    MemoryRowStore rows = NewRows(type, width_);
    const std::vector<float> weights = WeightsOf(rows);
    const std::vector<int32_t> ids = Ids();
    std::vector<float> out(ids.size() * width_);
    GatherRows(rows.slots(), ids, out.data());
    for (size_t i = 0; i < ids.size(); ++i)
      for (size_t d = 0; d < width_; ++d)
        EXPECT_EQ(out[i * width_ + d], weights[static_cast<size_t>(ids[i]) * width_ + d]);
  }
}

TEST_P(Kernels, PoolingIsInBagOrder) {
  const std::vector<int32_t> ids = Ids();
  const size_t bags = kOffsets.size() - 1;
  for (const FloatType type : kTypes) {
    MemoryRowStore rows = NewRows(type, width_);
    const std::vector<float> weights = WeightsOf(rows);
    std::vector<float> out(bags * width_, 7.0f);
    PoolRows(rows.slots(), ids.data(), kOffsets, out.data());
    for (size_t bag = 0; bag < bags; ++bag) {
      const size_t begin = static_cast<size_t>(kOffsets[bag]);
      const size_t end = static_cast<size_t>(kOffsets[bag + 1]);
      for (size_t d = 0; d < width_; ++d) {
        float sum = 0;
        for (size_t k = begin; k < end; ++k) {
          const float w = weights[static_cast<size_t>(ids[k]) * width_ + d];
          sum = k == begin ? w : sum + w;
        }
        EXPECT_EQ(out[bag * width_ + d], sum) << bag;
      }
    }
  }
}

TEST_P(Kernels, RowBlocksArePooledAsATree) {
  // Blocks of 3, 1, 4 and 2 rows; bags with rows of one, two, three and all of them.
  const std::vector<int64_t> first = {0, 3, 4, 8, 10};
  const std::vector<int32_t> ids = {5, 4, 4, 1, 9, 0, 2, 3, 7, 2, 0, 3, 6, 4, 9, 8, 9};
  const std::vector<int32_t> offsets = {0, 3, 5, 9, 17};
  using Block = std::vector<float>;
  for (const RowCodec wire : {RowCodec::kFloat32, RowCodec::kFloat16, RowCodec::kBFloat16,
                              RowCodec::kInt8, RowCodec::kInt4}) {
    MemoryRowStore rows = NewRows(FloatType::kFloat32, width_);
    const std::vector<float> weights = WeightsOf(rows);
    std::vector<float> out(4 * width_);
    PoolRowBlocks(rows.slots(), first, wire, ids.data(), ids.data(), offsets, out.data());
    for (size_t bag = 0; bag < 4; ++bag) {
      std::vector<Block> leaves(4);  // empty, or the sum of a block's rows
      for (int32_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
        const int32_t id = ids[static_cast<size_t>(i)];
        size_t block = 0;
        while (first[block + 1] <= id) ++block;
        const float* w = weights.data() + static_cast<size_t>(id) * width_;
        Block& leaf = leaves[block];
        if (leaf.empty()) {
          leaf.assign(w, w + width_);
        } else {
          for (size_t d = 0; d < width_; ++d) leaf[d] += w[d];
        }
      }
      for (Block& leaf : leaves) RoundTripRow(wire, leaf);
      const auto node = [&](Block a, const Block& b) {
        if (a.empty() || b.empty()) return a.empty() ? b : a;
        for (size_t d = 0; d < width_; ++d) a[d] += b[d];
        RoundTripRow(wire, a);
        return a;
      };
      EXPECT_EQ(node(node(leaves[0], leaves[1]), node(leaves[2], leaves[3])),
                Block(out.begin() + static_cast<int64_t>(bag * width_),
                      out.begin() + static_cast<int64_t>((bag + 1) * width_)));
    }
  }
}

// Σ g², in chunks of 16, each by a balanced tree.
float SumOfSquaresInChunks(const std::vector<float>& g) {
  float sum = 0;
  for (size_t begin = 0; begin < g.size(); begin += 16) {
    float tree[16] = {};
    for (size_t i = 0; i < 16 && begin + i < g.size(); ++i) tree[i] = g[begin + i] * g[begin + i];
    for (size_t half = 8; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) tree[i] += tree[i + half];
    sum += tree[0];
  }
  return sum;
}

// One step by definition, for one row.
void TakeStep(const RowStep& step, std::vector<float> g, float* w, float* s) {
  using enum SparseOptimizerType;
  for (size_t d = 0; d < g.size(); ++d) {
    g[d] *= step.gradient_scale;
    g[d] += step.l2 * w[d];
    w[d] *= step.kept;
  }
  const SparseFactors& f = step.optimizer;
  float row_rate = f.lr;
  if (f.type == kRowWiseAdagrad) {
    *s += SumOfSquaresInChunks(g) / static_cast<float>(g.size());
    row_rate = f.lr / (std::sqrt(*s) + f.epsilon);
  }
  for (size_t d = 0; d < g.size(); ++d) {
    float &first = s[d], &second = s[g.size() + d];
    switch (f.type) {
      case kSgd:
      case kRowWiseAdagrad:
        w[d] -= row_rate * g[d];
        break;
      case kAdagrad:
        first += g[d] * g[d];
        w[d] -= f.lr * g[d] / (std::sqrt(first) + f.epsilon);
        break;
      case kAdam:
        first = f.adam.beta1 * first + f.adam.rest1 * g[d];
        second = f.adam.beta2 * second + f.adam.rest2 * (g[d] * g[d]);
        w[d] -= f.adam.lr * (first * f.adam.correct1) /
                (std::sqrt(second * f.adam.correct2) + f.adam.epsilon);
        break;
      case kMomentum:
        first = f.momentum * first + g[d];
        w[d] -= f.lr * first;
        break;
      case kFtrl: {
        const float sum = second + g[d] * g[d];
        const float sigma = (std::sqrt(sum) - std::sqrt(second)) / f.lr;
        first += g[d] - sigma * w[d];
        second = sum;
        const float strength = (f.beta + std::sqrt(sum)) / f.lr + f.l2;
        w[d] = std::fabs(first) <= f.l1 ? 0 : (std::copysign(f.l1, first) - first) / strength;
        break;
      }
    }
  }
}

// Of an optimizer with options that are not its defaults.
SparseFactors FactorsFor(SparseOptimizerType type) {
  return FactorsOf({.type = type, .momentum = 0.8, .beta = 0.5, .l1 = 0.3, .l2 = 0.2}, 0.1, 3);
}

// The word for one column of a row, by definition (stochastic_rounding-inl.h).
uint32_t RandomOf(const RowStep& step, size_t row, uint32_t column) {
  uint32_t x = Philox::Draw(step.rounding_key, row, static_cast<uint64_t>(step.step))[0] +
               column * 0x9E3779B9u;
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

// Stochastic rounding by definition: in units of the last place the lower neighbour, or the upper
// one if the fraction's first bits and as many random ones add up to one.
float Rounded(FloatType type, float value, uint32_t random) {
  if (type == FloatType::kFloat32) return value;
  const bool half = type == FloatType::kFloat16;
  const int bits = half ? 13 : 16, fraction_bits = 23 - bits, least_exponent = half ? -14 : -126;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return value;
  const int exponent = std::max(std::ilogb(magnitude), least_exponent) - fraction_bits;
  const double units = std::ldexp(magnitude, -exponent), lower = std::floor(units);
  const double fraction = std::floor(std::ldexp(units - lower, bits));
  const double up = fraction + static_cast<double>(random >> (32 - bits)) >= std::ldexp(1, bits);
  const double rounded = std::min(std::ldexp(lower + up, exponent), half ? 65504 : 0x1.FEp127);
  return std::copysign(static_cast<float>(rounded), value);
}

TEST_P(Kernels, AnUpdateIsOneStepOfTheSummedGradientPerRow) {
  const auto pooled = RandomValues(kSamples * width_, 3);
  for (const SparseOptimizerType optimizer : kOptimizers) {
    for (const RowStep& step :
         {RowStep{
              .optimizer = FactorsFor(optimizer), .rounding_key = 12345678901234567u, .step = 5},
          {.optimizer = FactorsFor(optimizer), .gradient_scale = 0.3f},
          {.optimizer = FactorsFor(optimizer), .l2 = 0.01f},
          {.optimizer = FactorsFor(optimizer), .kept = 0.9f}}) {
      const size_t state_width = StateWidth(optimizer, width_);
      for (const FloatType type : kTypes) {
        MemoryRowStore rows = NewRows(type, width_, state_width);
        std::vector<float> expected = WeightsOf(rows), expected_state = StateOf(rows);
        for (const auto& [row, g] : GradientOfEachRow(pooled, width_)) {
          float* w = expected.data() + row * width_;
          TakeStep(step, g, w, expected_state.data() + row * state_width);
          for (uint32_t d = 0; d < width_; ++d) w[d] = Rounded(type, w[d], RandomOf(step, row, d));
        }
        EXPECT_TRUE(UpdateRows(step, GradientsOf(pooled), rows.slots()));
        EXPECT_EQ(WeightsOf(rows), expected);
        EXPECT_EQ(StateOf(rows), expected_state);
      }
    }
  }
}

TEST_P(Kernels, AnUpdateSeesEveryBadValue) {
  const float bad = std::numeric_limits<float>::infinity();
  for (const SparseOptimizerType optimizer : kOptimizers) {
    for (const size_t sample : {4u, 2u, 3u}) {  // of the first, a middle and the last row
      for (const FloatType type : kTypes) {
        MemoryRowStore rows = NewRows(type, width_, StateWidth(optimizer, width_));
        auto pooled = RandomValues(kSamples * width_, 3);
        pooled[sample * width_ + width_ / 2] = bad;
        EXPECT_FALSE(
            UpdateRows({.optimizer = FactorsFor(optimizer)}, GradientsOf(pooled), rows.slots()));
      }
    }
  }
}

TEST_P(Kernels, NegativeZerosBecomePositive) {
  std::vector<float> values(width_, -0.0f);
  values.insert(values.end(), {-1.5f, 0.0f, NAN});
  ClearNegativeZeros(std::ssize(values), values.data());
  for (size_t d = 0; d < width_; ++d) EXPECT_FALSE(std::signbit(values[d]));
  EXPECT_EQ(values[width_], -1.5f);
  EXPECT_TRUE(std::isnan(values.back()));
}

TEST_P(Kernels, SquaresAreOfTheSummedGradients) {
  const auto pooled = RandomValues(kSamples * width_, 3);
  std::vector<double> expected;
  for (const auto& [row, g] : GradientOfEachRow(pooled, width_))
    expected.push_back(SumOfSquares(g.data(), dim_));
  std::vector<double> squares(kLookups.size());
  squares.resize(RowGradientSquares(GradientsOf(pooled), dim_, squares.data()));
  EXPECT_EQ(squares, expected);
}

TEST_P(Kernels, BitsDoNotDependOnTheInstructionSet) {
  const auto results = [&] {
    const auto pooled = RandomValues(kSamples * width_, 3);
    std::vector<float> all;
    for (const FloatType type : kTypes)
      for (const SparseOptimizerType optimizer : kOptimizers) {
        MemoryRowStore rows = NewRows(type, width_, StateWidth(optimizer, width_));
        UpdateRows({.optimizer = FactorsFor(optimizer), .rounding_key = 3}, GradientsOf(pooled),
                   rows.slots());
        std::vector<float> pooled_rows((kOffsets.size() - 1) * width_);
        PoolRows(rows.slots(), Ids().data(), kOffsets, pooled_rows.data());
        for (const std::vector<float>& part : {pooled_rows, WeightsOf(rows), StateOf(rows)})
          all.insert(all.end(), part.begin(), part.end());
      }
    return all;
  };
  const std::vector<float> expected = results();
  testing::OnEveryInstructionSet([&] { EXPECT_EQ(results(), expected); });
}

// Steps of one value, in double precision.
struct Twin {
  SparseOptimizerOptions options;
  double w, a = 0, b = 0;

  void Step(double lr, double g, int64_t step) {
    const double t = static_cast<double>(step + 1);
    switch (options.type) {
      case SparseOptimizerType::kAdam: {
        a = options.beta1 * a + (1 - options.beta1) * g;
        b = options.beta2 * b + (1 - options.beta2) * g * g;
        const double size =
            lr * std::sqrt(1 - std::pow(options.beta2, t)) / (1 - std::pow(options.beta1, t));
        w -= size * a / (std::sqrt(b) + options.epsilon);
        return;
      }
      case SparseOptimizerType::kMomentum:
        a = options.momentum * a + g;
        w -= lr * a;
        return;
      default: {
        const double n = b + g * g;
        a += g - (std::sqrt(n) - std::sqrt(b)) / lr * w;
        b = n;
        const double pulled = std::max(0.0, std::fabs(a) - options.l1);
        w = -std::copysign(pulled, a) / ((options.beta + std::sqrt(n)) / lr + options.l2);
      }
    }
  }
};

TEST(SparseSteps, FollowTheirFormulasInDoublePrecision) {
  constexpr int64_t kSteps = 50, kDim = 24;
  constexpr double kRate = 0.05;
  const std::vector<Lookup> lookups = {MakeLookup(0, 0)};
  const uint16_t virtual_worker = 0;
  for (const SparseOptimizerType type :
       {SparseOptimizerType::kAdam, SparseOptimizerType::kMomentum, SparseOptimizerType::kFtrl}) {
    const SparseOptimizerOptions options = {.type = type,
                                            .epsilon = 1e-4,
                                            .beta1 = 0.8,
                                            .beta2 = 0.97,
                                            .momentum = 0.7,
                                            .beta = 0.5,
                                            .l1 = 0.3,
                                            .l2 = 0.2};
    std::vector<float> w = RandomValues(kDim, 1);
    std::vector<Twin> twins;
    for (const float value : w) twins.push_back({options, value});
    MemoryRowStore row(
        {.layout = {FloatType::kFloat32, kDim, StateFloatsPerRow(type, kDim)}, .rows = 1});
    row.SetWeights(0, w);
    int64_t zeros = 0;
    for (int64_t step = 0; step < kSteps; ++step) {
      const std::vector<float> g = RandomValues(kDim, static_cast<uint64_t>(100 + step));
      UpdateRows({.optimizer = FactorsOf(options, kRate, step)},
                 {lookups, g.data(), &virtual_worker}, row.slots());
      w = WeightsOf(row);
      for (size_t d = 0; d < kDim; ++d) {
        twins[d].Step(kRate, static_cast<double>(g[d]), step);
        ASSERT_NEAR(w[d], twins[d].w, 1e-5) << InfoOf(type).name << ", step " << step;
        zeros += w[d] == 0 ? 1 : 0;
      }
    }
    // L1 leaves out some values, not all.
    EXPECT_EQ(zeros > 0 && zeros < kSteps * kDim, type == SparseOptimizerType::kFtrl) << zeros;
  }
}

TEST(PoolRows, KeepsInfinityAndNan) {
  const std::vector<float> values = {INFINITY, -INFINITY, NAN, 1};
  for (const FloatType type : kTypes) {
    MemoryRowStore rows({.layout = {type, 4}, .rows = 1});
    rows.SetWeights(0, values);
    testing::OnEveryInstructionSet([&] {
      std::vector<float> pooled(4);
      PoolRows(rows.slots(), std::vector<int32_t>{0}.data(), std::vector<int32_t>{0, 1},
               pooled.data());
      EXPECT_EQ(pooled[0], INFINITY);
      EXPECT_EQ(pooled[1], -INFINITY);
      EXPECT_TRUE(std::isnan(pooled[2]));
      EXPECT_EQ(pooled[3], 1);
    });
  }
}

TEST(StochasticRounding, RoundsAsDefinedAtEveryMagnitude) {
  std::vector<float> values;
  for (int exponent = -30; exponent <= 16; ++exponent)
    for (const float value : RandomValues(50, static_cast<uint64_t>(exponent + 40)))
      values.push_back(std::ldexp(value, exponent));
  for (const float value : {0.0f, 65504.0f, 65519.0f, 65536.0f, 0x1.FEp127f, 0x1.FFFFFEp127f})
    for (const float signed_value : {value, -value}) values.push_back(signed_value);
  const int64_t dim = static_cast<int64_t>(values.size());
  std::vector<float> gradient;
  for (const float value : values) gradient.push_back(-value);
  const std::vector<Lookup> lookups = {MakeLookup(0, 0)};
  const uint16_t virtual_worker = 0;
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    for (int64_t step = 0; step < 20; ++step) {
      MemoryRowStore rows({.layout = {type, dim}, .rows = 1});
      const RowStep row_step = {.optimizer = {.type = SparseOptimizerType::kSgd, .lr = 1},
                                .rounding_key = 42,
                                .step = step};
      UpdateRows(row_step, {lookups, gradient.data(), &virtual_worker}, rows.slots());
      const std::vector<float> rounded = WeightsOf(rows);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(rounded[i],
                  Rounded(type, values[i], RandomOf(row_step, 0, static_cast<uint32_t>(i))))
            << Name(type) << " of " << values[i];
    }
  }
}

// A step of gradient zero only rounds, so rows of 16 bits must not move; and steps that are far
// below the last place must arrive on average.
TEST(StochasticRounding, SmallStepsArriveOnAverage) {
  constexpr size_t kDim = 64;
  constexpr int kSteps = 4000;
  const std::vector<Lookup> lookups = {MakeLookup(0, 0)};
  const uint16_t virtual_worker = 0;
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    for (const float start : {1.0f, 0x1.8p-3f, 0x1p-16f}) {  // the last is subnormal in float16
      const float half_last_place = start * (type == FloatType::kFloat16 ? 0x1p-12f : 0x1p-9f);
      const float small =
          start == 0x1p-16f && type == FloatType::kFloat16 ? 0x1p-26f : half_last_place / 8;
      MemoryRowStore rows({.layout = {type, kDim}, .rows = 1});
      rows.SetWeights(0, std::vector<float>(kDim, start));
      for (const bool moves : {false, true}) {
        const std::vector<float> gradient(kDim, moves ? -small : 0.0f);
        for (int step = 0; step < kSteps; ++step)
          UpdateRows({.optimizer = {.type = SparseOptimizerType::kSgd, .lr = 1},
                      .rounding_key = 99,
                      .step = step},
                     {lookups, gradient.data(), &virtual_worker}, rows.slots());
        double mean = 0;
        for (const float value : WeightsOf(rows)) mean += static_cast<double>(value) / kDim;
        const double expected = moves ? start + double{small} * kSteps : start;
        // Five standard deviations of a sum of roundings, each of at most half of a unit of the
        // last place near the end of the way.
        const double unit = expected * (type == FloatType::kFloat16 ? 0x1p-10 : 0x1p-7);
        const double deviation =
            moves ? std::max(unit, 0x1p-24) * std::sqrt(kSteps / 4.0 / kDim) : 0;
        EXPECT_NEAR(mean, expected, 5 * deviation) << Name(type) << " from " << start;
        EXPECT_GE(mean, moves ? start + double{small} * kSteps / 2 : start);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dims, Kernels, ::testing::Values(1, 3, 8, 16, 17, 64, 100, 300));

}  // namespace
}  // namespace renzan
