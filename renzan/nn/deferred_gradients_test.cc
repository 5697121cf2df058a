#include "renzan/nn/deferred_gradients.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/nn/isa.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

struct Layer {
  int64_t out, in;
  bool has_bias;
  int64_t rows_per_sample = 1;
};

// The sum over virtual workers [begin, begin + size), by a balanced binary tree.
std::vector<float> TreeSum(const std::vector<std::vector<float>>& leaves, size_t begin,
                           size_t size) {
  if (size == 1) return leaves[begin];
  std::vector<float> sum = TreeSum(leaves, begin, size / 2);
  const std::vector<float> right = TreeSum(leaves, begin + size / 2, size / 2);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

void ExpectTheSumsOfFlatGradients(int64_t n, const std::vector<int>& sizes,
                                  const std::vector<Layer>& layers) {
  ParameterLayout layout;
  struct Offsets {
    int64_t weight;
    std::optional<int64_t> bias;
  };
  std::vector<Offsets> offsets;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string name = fmt::format("{}", i);
    const int64_t weight = layout.Add("w" + name, {layers[i].out, layers[i].in}, Initializer::kZero,
                                      layers[i].rows_per_sample);
    offsets.push_back({weight, std::nullopt});
    if (layers[i].has_bias)
      offsets.back().bias = layout.Add("b" + name, {layers[i].out}, Initializer::kZero);
  }
  const int64_t vector = layout.Add("vector", {37}, Initializer::kOne);
  const int virtual_workers = std::accumulate(sizes.begin(), sizes.end(), 0);
  DeferredGradients deferred(layout, virtual_workers, n);
  std::vector<std::vector<float>> leaves;
  for (int v = 0; v < virtual_workers; ++v) {
    std::vector<float> leaf(static_cast<size_t>(layout.size()));
    FlatGradients flat(leaf.data());
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto values = [&](int64_t columns, uint64_t salt) {
        const uint64_t seed = static_cast<uint64_t>(v) * 100 + i * 2 + salt;
        const int64_t rows = n * layers[i].rows_per_sample;
        return Blocked(RandomValues(static_cast<size_t>(rows * columns), seed), rows, columns,
                       Precision::kBFloat16);
      };
      const BlockedMatrix dy = values(layers[i].out, 0), x = values(layers[i].in, 1);
      flat.Add(dy, x, offsets[i].weight, offsets[i].bias);
      deferred.of(static_cast<size_t>(v)).Add(dy, x, offsets[i].weight, offsets[i].bias);
    }
    const BlockedMatrix d =
        Blocked(RandomValues(static_cast<size_t>(n * 37), 7 + v), n, 37, Precision::kBFloat16);
    flat.AddVector(d, vector);
    deferred.of(static_cast<size_t>(v)).AddVector(d, vector);
    leaves.push_back(std::move(leaf));
  }
  std::vector<std::vector<float>> sums(sizes.size(),
                                       std::vector<float>(static_cast<size_t>(layout.size())));
  std::vector<float*> pointers;
  for (std::vector<float>& sum : sums) pointers.push_back(sum.data());
  ThreadPool pool(2);
  deferred.Sum(pool, sizes, pointers);
  size_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t size = static_cast<size_t>(sizes[i]);
    ASSERT_EQ(sums[i], TreeSum(leaves, begin, size)) << "samples " << n << ", subtree " << i;
    begin += size;
  }
}

bool SelectTiles() {
  try {
    SelectIsa("amx", Precision::kBFloat16);
  } catch (const Error&) {
    return false;  // not supported by this machine
  }
  return true;
}

TEST(DeferredGradients, AreTheSumsOfFlatGradients) {
  const std::vector<Layer> layers = {{13, 40, true},  {512, 13, true}, {1, 65, true},
                                     {70, 1, false},  {33, 300, true}, {64, 64, false},
                                     {300, 31, true}, {16, 48, false}};
  for (const bool emulated : {false, true}) {
    EmulateTileRegisters(emulated);
    if (!SelectTiles()) GTEST_SKIP() << "this machine cannot even emulate AMX";
    ExpectTheSumsOfFlatGradients(1, {1}, layers);
    ExpectTheSumsOfFlatGradients(31, {4, 1}, layers);
    ExpectTheSumsOfFlatGradients(64, {8}, layers);
    ExpectTheSumsOfFlatGradients(33, {16, 2}, {{40, 50, true}});
    ExpectTheSumsOfFlatGradients(5, {128}, {{33, 17, true}});
    ExpectTheSumsOfFlatGradients(21, {4, 2}, {{33, 17, true, 3}, {16, 16, false, 26}});
    // So many samples that columns are taken a few at a time.
    ExpectTheSumsOfFlatGradients(4100, {4, 2}, {{65, 100, true}});
  }
  EmulateTileRegisters(false);
  SelectIsa("auto");
}

TEST(DeferredGradients, AreForTilesAndNotTooManySamples) {
  ParameterLayout layout;
  layout.Add("w", {1000, 500}, Initializer::kZero);
  if (!SelectTiles()) GTEST_SKIP() << "this machine cannot even emulate AMX";
  EXPECT_TRUE(DeferredGradients::PayOff(layout, Precision::kBFloat16, 100));
  EXPECT_FALSE(DeferredGradients::PayOff(layout, Precision::kBFloat16, 1000));
  ParameterLayout narrow;
  narrow.Add("w", {1000, 2}, Initializer::kZero);
  EXPECT_FALSE(DeferredGradients::PayOff(narrow, Precision::kBFloat16, 100)) << "more memory";
  EXPECT_FALSE(DeferredGradients::PayOff(layout, Precision::kFloat32, 100));
  SelectIsa("avx2", Precision::kBFloat16);
  EXPECT_FALSE(DeferredGradients::PayOff(layout, Precision::kBFloat16, 100));
  SelectIsa("auto");
}

}  // namespace
}  // namespace renzan
