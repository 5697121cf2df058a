#pragma once

// The shape of the tree by which the arrays of V virtual workers are reduced: the aligned subtrees
// that a worker reduces on its own, and how all workers' subtrees become one. Pure functions.

#include <cstddef>
#include <utility>
#include <vector>

#include "renzan/base/index_range.h"

namespace renzan {

// An aligned subtree: leaves [begin, begin + size), size a power of two that divides begin.
struct TreeBlock {
  int begin, size;
};

// Whether two neighbours are the halves of an aligned subtree.
bool AreHalves(const TreeBlock& left, const TreeBlock& right);

// The largest aligned subtrees that make up [range.begin, range.end).
std::vector<TreeBlock> MaximalBlocks(IndexRange range);

// The additions that reduce consecutive blocks to their common root: node[to] += node[from] in this
// order; the root is node[0]. If the number of leaves is not a power of two, an inner node without
// a right half equals its left half.
std::vector<std::pair<size_t, size_t>> TreeAdditions(const std::vector<TreeBlock>& blocks);

}  // namespace renzan
