#include "renzan/comm/streaming_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "renzan/comm/testing.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {
namespace {

constexpr size_t kLength = 5003;

template <class T>
std::vector<T> Leaf(int v) {
  std::mt19937 random(static_cast<uint32_t>(v + 1));
  std::normal_distribution<T> normal;
  std::vector<T> leaf(kLength);
  for (T& value : leaf) value = std::ldexp(normal(random), static_cast<int>(random() % 12) - 6);
  return leaf;
}

// The definition, taken literally; nodes that do not exist are left out.
template <class T>
T Tree(const std::vector<std::vector<T>>& leaves, size_t begin, size_t size, size_t i,
       FloatType wire) {
  T value;
  if (size == 1) {
    value = leaves[begin][i];
  } else {
    value = Tree(leaves, begin, size / 2, i, wire);
    if (begin + size / 2 >= leaves.size()) return value;
    value += Tree(leaves, begin + size / 2, size / 2, i, wire);
  }
  if constexpr (std::is_same_v<T, float>) RoundTrip(wire, {&value, 1});
  return value;
}

template <class T>
std::vector<T> Streamed(Communicator& communicator, int virtual_workers, ElementType element,
                        FloatType wire) {
  ThreadPool pool(1);
  TreeReducer reducer(communicator, pool, virtual_workers, kLength,
                      ReduceFormat{.element = element, .wire = wire}, "leaves");
  const IndexRange own =
      VirtualWorkerRange(virtual_workers, communicator.world_size(), communicator.rank());
  StreamingTree tree(own, kLength, element, wire);
  std::vector<T> sum(kLength);
  for (int round = 0; round < 2; ++round) {  // it can be used again
    for (int v = own.begin; v < own.end; ++v) {
      const std::vector<T> leaf = Leaf<T>(v);
      const auto* const bytes = reinterpret_cast<const std::byte*>(leaf.data());
      const std::vector<ArrayPart> parts = {{bytes, 3000, element},
                                            {bytes + 3000 * sizeof(T), kLength - 3000, element}};
      tree.Add(parts);
    }
    EXPECT_TRUE(tree.complete());
    reducer.StartBlocks(tree.blocks(), reinterpret_cast<std::byte*>(sum.data()));
    reducer.Continue();
    reducer.Finish();
    tree.Clear();
  }
  const size_t most = static_cast<size_t>(std::bit_width(static_cast<unsigned>(own.size()))) + 1;
  EXPECT_LE(tree.num_arrays(), most);
  return sum;
}

template <class T>
void ExpectTheTree(ElementType element, FloatType wire) {
  for (const int virtual_workers : {1, 2, 3, 5, 6, 7, 8, 12, 16}) {
    std::vector<std::vector<T>> leaves;
    for (int v = 0; v < virtual_workers; ++v) leaves.push_back(Leaf<T>(v));
    const size_t root = std::bit_ceil(static_cast<size_t>(virtual_workers));
    std::vector<T> expected(kLength);
    for (size_t i = 0; i < kLength; ++i) expected[i] = Tree(leaves, 0, root, i, wire);
    for (int workers = 1; workers <= std::min(virtual_workers, 5); ++workers)
      RunRanksAsThreads(workers, [&](Communicator& communicator) {
        const std::vector<T> sum = Streamed<T>(communicator, virtual_workers, element, wire);
        EXPECT_EQ(std::memcmp(sum.data(), expected.data(), kLength * sizeof(T)), 0)
            << virtual_workers << " virtual workers on " << workers;
      });
  }
}

TEST(StreamingTreeTest, IsTheTreeForAnyNumberOfWorkersAndVirtualWorkers) {
  ExpectTheTree<float>(ElementType::kFloat32, FloatType::kFloat32);
  ExpectTheTree<double>(ElementType::kFloat64, FloatType::kFloat32);
}

TEST(StreamingTreeTest, RoundsEveryNodeToTheWire) {
  ExpectTheTree<float>(ElementType::kFloat32, FloatType::kBFloat16);
  ExpectTheTree<float>(ElementType::kFloat32, FloatType::kFloat16);
}

TEST(StreamingTreeTest, TakesPartsOfSixteenBitsAndMissingOnes) {
  const std::vector<float> values = {1.5f, -2.25f, 1000.0f};
  std::vector<std::byte> encoded(EncodedBytes(FloatType::kBFloat16, values.size()));
  Encode(FloatType::kBFloat16, values, encoded.data());
  const std::vector<ArrayPart> parts = {{encoded.data(), 3, ElementType::kBFloat16},
                                        {nullptr, 2, ElementType::kFloat32}};
  StreamingTree tree({0, 2}, 5, ElementType::kFloat32, FloatType::kFloat32);
  tree.Add(parts);
  tree.Add(parts);
  ASSERT_EQ(tree.blocks().size(), 1u);
  std::vector<float> sum(5);
  std::memcpy(sum.data(), tree.blocks()[0], 5 * sizeof(float));
  EXPECT_EQ(sum, (std::vector<float>{3.0f, -4.5f, 2000.0f, 0.0f, 0.0f}));
}

TEST(StreamingTreeTest, HoldsLogarithmicallyManyArrays) {
  StreamingTree tree({0, 64}, 3, ElementType::kFloat32, FloatType::kFloat32);
  const std::vector<float> ones = {1, 1, 1};
  const std::vector<ArrayPart> parts = {
      {reinterpret_cast<const std::byte*>(ones.data()), 3, ElementType::kFloat32}};
  for (int v = 0; v < 64; ++v) tree.Add(parts);
  EXPECT_EQ(tree.num_arrays(), 6u);
}

}  // namespace
}  // namespace renzan
