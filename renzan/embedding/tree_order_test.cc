#include "renzan/embedding/tree_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace renzan {
namespace {

// The sum of some leaves of [0, 8), with a pair of brackets for each addition.
std::string SumOf(const std::vector<uint32_t>& leaves) {
  std::vector<std::string> stack(TreeOrder::kMaxDepth);
  const auto add = [&](size_t from, size_t to) { stack[to] = "(" + stack[to] + stack[from] + ")"; };
  TreeOrder order;
  for (const uint32_t leaf : leaves) {
    const size_t at = order.Push(leaf, add);
    stack[at] = std::to_string(leaf);
  }
  order.Finish(add);
  return stack[0];
}

// The same by definition.
std::string Expected(const std::vector<uint32_t>& leaves, uint32_t begin, uint32_t size) {
  if (size == 1) {
    for (const uint32_t leaf : leaves)
      if (leaf == begin) return std::to_string(leaf);
    return "";
  }
  const std::string left = Expected(leaves, begin, size / 2);
  const std::string right = Expected(leaves, begin + size / 2, size / 2);
  if (left.empty() || right.empty()) return left + right;
  return "(" + left + right + ")";
}

TEST(TreeOrder, IsTheTreeOfTheLeavesThatAreThere) {
  EXPECT_EQ(SumOf({0, 1, 2, 3, 4, 5, 6, 7}), "(((01)(23))((45)(67)))");
  for (uint32_t present = 1; present < 256; ++present) {
    std::vector<uint32_t> leaves;
    for (uint32_t leaf = 0; leaf < 8; ++leaf)
      if (present >> leaf & 1) leaves.push_back(leaf);
    EXPECT_EQ(SumOf(leaves), Expected(leaves, 0, 8));
  }
}

TEST(TreeOrder, SumsOfSubtreesGiveTheSameTree) {
  // Shards [0, 2), [2, 4), [4, 8), known by their first leaf.
  const auto of_shards = [](uint32_t present) {
    std::vector<std::string> stack(TreeOrder::kMaxDepth);
    const auto add = [&](size_t from, size_t to) {
      stack[to] = "(" + stack[to] + stack[from] + ")";
    };
    TreeOrder order;
    for (const auto& [begin, size] : {std::pair{0u, 2u}, {2u, 2u}, {4u, 4u}}) {
      std::vector<uint32_t> leaves;
      for (uint32_t leaf = begin; leaf < begin + size; ++leaf)
        if (present >> leaf & 1) leaves.push_back(leaf);
      if (leaves.empty()) continue;
      const std::string sum = SumOf(leaves);
      stack[order.Push(begin, add)] = sum;
    }
    order.Finish(add);
    return stack[0];
  };
  for (uint32_t present = 1; present < 256; ++present) {
    std::vector<uint32_t> leaves;
    for (uint32_t leaf = 0; leaf < 8; ++leaf)
      if (present >> leaf & 1) leaves.push_back(leaf);
    EXPECT_EQ(of_shards(present), Expected(leaves, 0, 8));
  }
}

}  // namespace
}  // namespace renzan
