#pragma once

// This worker's part of a tree reduction (tree_reduce.h) while its virtual workers are computed one
// after another: the arrays of k virtual workers, in their order, become the aligned subtrees that
// the workers exchange. At most max(1, log2 k) arrays are held at any time; a few more if k is not
// a power of two.
//
// Not thread-safe.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/index_range.h"
#include "renzan/comm/reduce_op.h"
#include "renzan/comm/tree_blocks.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {

// A piece of an array whose pieces lie in several places. Its element type may differ from that of
// the sum.
struct ArrayPart {
  const std::byte* data = nullptr;  // null: zeros
  size_t count = 0;                 // elements
  ElementType element = ElementType::kFloat32;
};

class StreamingTree {
 public:
  // Sums of `length` elements of `element`: kFloat32 or kFloat64. `wire` as in tree_reduce.h, for
  // kFloat32. `leaves`: this worker's virtual workers.
  StreamingTree(IndexRange leaves, size_t length, ElementType element, FloatType wire);

  // The array of the next virtual worker; the counts of its parts sum up to `length`. Sums of
  // kFloat32 take parts of float32, float16 and bfloat16, those of kFloat64 only their own.
  void Add(std::span<const ArrayPart> parts);
  bool complete() const { return next_leaf_ == leaves_.end; }

  // Once complete: one array per block of MaximalBlocks(leaves), until Clear().
  std::span<const std::byte* const> blocks() const { return blocks_; }
  // Starts over.
  void Clear();

  // Arrays allocated so far, which is the most that were needed at once.
  size_t num_arrays() const { return num_arrays_; }

 private:
  using Array = std::unique_ptr<std::byte[]>;
  struct Node {
    TreeBlock block;
    Array array;
  };

  Array TakeArray();
  void Copy(std::span<const ArrayPart> parts, std::byte* to) const;
  void AddTo(std::span<const ArrayPart> parts, std::byte* sum);
  void Merge(std::byte* sum, const std::byte* term, size_t n) const;
  void RoundLeaf(std::byte* values, size_t n) const;

  const IndexRange leaves_;
  const size_t length_;
  const ElementType element_;
  const FloatType wire_;
  const size_t element_bytes_;
  int next_leaf_;
  std::vector<Node> stack_;
  std::vector<Array> free_;
  std::vector<const std::byte*> blocks_;
  std::vector<float> scratch_;
  size_t num_arrays_ = 0;
};

}  // namespace renzan
