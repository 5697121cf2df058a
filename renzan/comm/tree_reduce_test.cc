#include "renzan/comm/tree_reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "renzan/comm/streaming_tree.h"
#include "renzan/comm/testing.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {
namespace {

constexpr uint32_t kSeed = 77;

using Arrays = std::vector<std::vector<float>>;

// Values of very different magnitude, so that any other order of additions is detected.
Arrays RandomLeaves(int num_virtual_workers, size_t length) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-6, 6);
  Arrays leaves(static_cast<size_t>(num_virtual_workers), std::vector<float>(length));
  for (auto& leaf : leaves)
    for (float& value : leaf) value = std::ldexp(normal(random), exponent(random));
  return leaves;
}

float Rounded(FloatType wire, float value) {
  RoundTrip(wire, {&value, 1});
  return value;
}

// The definition, taken literally.
float ReferenceTree(const Arrays& leaves, FloatType wire, size_t begin, size_t end, size_t i) {
  if (end - begin == 1) return Rounded(wire, leaves[begin][i]);
  const size_t middle = (begin + end) / 2;
  return Rounded(wire, ReferenceTree(leaves, wire, begin, middle, i) +
                           ReferenceTree(leaves, wire, middle, end, i));
}

std::vector<float> ReferenceSum(const Arrays& leaves, FloatType wire) {
  std::vector<float> sum(leaves[0].size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = ReferenceTree(leaves, wire, 0, leaves.size(), i);
  return sum;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
}

std::vector<float> ReduceOwn(TreeReducer& reducer, const Communicator& communicator,
                             const Arrays& all) {
  const IndexRange own = VirtualWorkerRange(static_cast<int>(all.size()), communicator.world_size(),
                                            communicator.rank());
  Arrays mine(all.begin() + own.begin, all.begin() + own.end);
  const std::vector<std::span<float>> leaves(mine.begin(), mine.end());
  std::vector<float> sum(all[0].size(), -1.0f);
  reducer.Reduce(leaves, sum);
  return sum;
}

// The sum takes the place of this worker's first block, or of its last in a world of one.
std::vector<float> ReduceInPlace(TreeReducer& reducer, const Communicator& communicator,
                                 const Arrays& all, FloatType wire) {
  const IndexRange own = VirtualWorkerRange(static_cast<int>(all.size()), communicator.world_size(),
                                            communicator.rank());
  StreamingTree tree(own, all[0].size(), ElementType::kFloat32, wire);
  for (int v = own.begin; v < own.end; ++v) {
    const std::vector<float>& leaf = all[static_cast<size_t>(v)];
    const ArrayPart part = {reinterpret_cast<const std::byte*>(leaf.data()), leaf.size(),
                            ElementType::kFloat32};
    tree.Add({&part, 1});
  }
  const std::span<const std::byte* const> blocks = tree.blocks();
  auto* const sum =
      const_cast<std::byte*>(communicator.world_size() == 1 ? blocks.back() : blocks.front());
  reducer.StartBlocks(blocks, sum);
  reducer.Continue();
  reducer.Finish();
  std::vector<float> copy(all[0].size());
  if (!copy.empty()) std::memcpy(copy.data(), sum, copy.size() * sizeof(float));
  return copy;
}

class TreeReduceTest : public testing::TestWithParam<std::tuple<int, FloatType>> {};
INSTANTIATE_TEST_SUITE_P(Trees, TreeReduceTest,
                         testing::Combine(testing::Values(1, 2, 4, 8, 16),
                                          testing::Values(FloatType::kFloat32, FloatType::kFloat16,
                                                          FloatType::kBFloat16)),
                         [](const auto& info) {
                           return "V" + std::to_string(std::get<0>(info.param)) + "_" +
                                  Name(std::get<1>(info.param));
                         });

TEST_P(TreeReduceTest, MatchesTheReferenceTreeBitForBitOnAnyPlacement) {
  const auto [num_virtual_workers, wire] = GetParam();
  for (size_t length : {0u, 1u, 5u, 17u, 1000u, 10007u, 20011u}) {
    const Arrays all = RandomLeaves(num_virtual_workers, length);
    const std::vector<float> expected = ReferenceSum(all, wire);
    for (int world_size = 1; world_size <= std::min(8, num_virtual_workers); ++world_size) {
      for (int threads : {1, 2}) {
        SCOPED_TRACE(testing::Message() << length << " values, " << world_size << " workers, "
                                        << threads << " threads");
        RunRanksAsThreads(world_size, [&](Communicator& communicator) {
          ThreadPool pool(threads);
          TreeReducer reducer(communicator, pool, num_virtual_workers, length, wire);
          // Twice: the first sum must not affect the second.
          for (int round = 0; round < 2; ++round)
            EXPECT_TRUE(SameBits(ReduceOwn(reducer, communicator, all), expected));
          EXPECT_TRUE(SameBits(ReduceInPlace(reducer, communicator, all, wire), expected));
        });
      }
    }
  }
}

TEST(VirtualWorkersTest, RangesCoverAllInOrder) {
  for (int v : {1, 2, 8, 16}) {
    for (int world_size = 1; world_size <= v; ++world_size) {
      int next = 0;
      for (int rank = 0; rank < world_size; ++rank) {
        const IndexRange range = VirtualWorkerRange(v, world_size, rank);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), v / world_size);
        EXPECT_LE(range.size(), (v + world_size - 1) / world_size);
        next = range.end;
      }
      EXPECT_EQ(next, v);
    }
  }
}

TEST(RunRanksAsThreadsTest, ReportsTheFirstErrorAndFreesTheOthers) {
  try {
    RunRanksAsThreads(3, [](Communicator& communicator) {
      if (communicator.rank() == 1) Fail(ErrorCode::kData, "bad row");
      communicator.Barrier();
      communicator.Barrier();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "bad row");
  }
}

TEST(TreeReducerTest, HoldsWhatOthersSend) {
  const auto memory = [](int virtual_workers, int workers, FloatType wire) {
    return TreeReducer::MemoryFor(virtual_workers, workers, 0, 3000, wire);
  };
  constexpr FloatType kExact = FloatType::kFloat32, kHalf = FloatType::kFloat16;
  EXPECT_EQ(memory(8, 1, kExact), 0);
  EXPECT_EQ(memory(8, 2, kExact), 4 * 1500);
  EXPECT_EQ(memory(6, 2, kExact), 2 * 4 * 1500);  // two subtrees each
  EXPECT_EQ(memory(12, 3, kExact), 2 * 4 * 1000);
  EXPECT_EQ(memory(8, 2, kHalf), 2 * 1500 + 2 * 2 * 3000);
}

}  // namespace
}  // namespace renzan
