#include "renzan/comm/tree_blocks.h"

namespace renzan {

bool AreHalves(const TreeBlock& left, const TreeBlock& right) {
  return left.size == right.size && left.begin % (2 * left.size) == 0;
}

std::vector<TreeBlock> MaximalBlocks(IndexRange range) {
  std::vector<TreeBlock> blocks;
  for (int begin = range.begin; begin < range.end;) {
    int size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= range.end) size *= 2;
    blocks.push_back({begin, size});
    begin += size;
  }
  return blocks;
}

std::vector<std::pair<size_t, size_t>> TreeAdditions(const std::vector<TreeBlock>& blocks) {
  std::vector<std::pair<size_t, size_t>> additions;
  std::vector<std::pair<TreeBlock, size_t>> stack;
  const auto merge = [&] {
    const size_t right = stack.back().second;
    stack.pop_back();
    additions.emplace_back(stack.back().second, right);
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    stack.emplace_back(blocks[i], i);
    while (stack.size() > 1 && AreHalves(stack[stack.size() - 2].first, stack.back().first)) {
      merge();
      stack.back().first.size *= 2;
    }
  }
  // What remains are subtrees of decreasing size: the binary digits of the number of leaves.
  while (stack.size() > 1) merge();
  return additions;
}

}  // namespace renzan
