#pragma once

// The order of sums over a fixed balanced binary tree with leaves [0, 2^k), some of which may be
// missing: a node with one child is that child. So the sum of a subtree does not depend on which
// worker added its leaves, and a sum of subtrees equals the sum of their leaves.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace renzan {

// A stack of vectors, for one sum at a time. The caller owns kMaxDepth vectors: Push() calls
// add(from, to) for each pair whose sum is due, and returns the vector for the next leaf.
class TreeOrder {
 public:
  static constexpr size_t kMaxDepth = 33;  // of 2^32 leaves

  // Leaves come in ascending order, each once. Returns the index of its vector.
  template <class Add>
  size_t Push(uint32_t leaf, const Add& add) {
    while (depth_ >= 2 &&
           Level(leaves_[depth_ - 2], leaves_[depth_ - 1]) < Level(leaves_[depth_ - 1], leaf))
      Merge(add);
    leaves_[depth_] = leaf;
    return depth_++;
  }

  // After at least one leaf: the sum is then in vector 0.
  template <class Add>
  void Finish(const Add& add) {
    while (depth_ > 1) Merge(add);
    depth_ = 0;
  }

 private:
  // The level of the lowest common ancestor.
  static int Level(uint32_t a, uint32_t b) { return std::bit_width(a ^ b); }

  template <class Add>
  void Merge(const Add& add) {
    --depth_;
    add(depth_, depth_ - 1);
  }

  size_t depth_ = 0;
  uint32_t leaves_[kMaxDepth];
};

}  // namespace renzan
