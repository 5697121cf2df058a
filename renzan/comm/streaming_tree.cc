#include "renzan/comm/streaming_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// How many elements, of at most 8 bytes, are converted at a time: they stay in the L1 cache.
constexpr size_t kConverted = 1024;

FloatType Encoding(ElementType element) {
  return element == ElementType::kFloat16 ? FloatType::kFloat16 : FloatType::kBFloat16;
}

std::span<float> Floats(std::byte* bytes, size_t n) { return {reinterpret_cast<float*>(bytes), n}; }

std::span<const float> Floats(const std::byte* bytes, size_t n) {
  return {reinterpret_cast<const float*>(bytes), n};
}

}  // namespace

StreamingTree::StreamingTree(IndexRange leaves, size_t length, ElementType element, FloatType wire)
    : leaves_(leaves),
      length_(length),
      element_(element),
      wire_(wire),
      element_bytes_(BytesOf(element)),
      next_leaf_(leaves.begin),
      scratch_(2 * kConverted) {
  CHECK(element == ElementType::kFloat32 ||
        (element == ElementType::kFloat64 && wire == FloatType::kFloat32));
}

StreamingTree::Array StreamingTree::TakeArray() {
  if (free_.empty()) {
    ++num_arrays_;
    return std::make_unique_for_overwrite<std::byte[]>(
        std::max<size_t>(1, length_ * element_bytes_));
  }
  Array array = std::move(free_.back());
  free_.pop_back();
  return array;
}

void StreamingTree::RoundLeaf(std::byte* values, size_t n) const {
  if (element_ == ElementType::kFloat32) RoundTrip(wire_, Floats(values, n));
}

void StreamingTree::Merge(std::byte* sum, const std::byte* term, size_t n) const {
  if (element_ == ElementType::kFloat32)
    AddRoundTrip(wire_, Floats(sum, n), Floats(term, n));
  else
    Combine(element_, ReduceOp::kSum)(sum, term, n);
}

void StreamingTree::Copy(std::span<const ArrayPart> parts, std::byte* to) const {
  for (const ArrayPart& part : parts) {
    if (part.data == nullptr)
      std::memset(to, 0, part.count * element_bytes_);
    else if (part.element == element_)
      std::memcpy(to, part.data, part.count * element_bytes_);
    else
      Decode(Encoding(part.element), part.data, Floats(to, part.count));
    RoundLeaf(to, part.count);
    to += part.count * element_bytes_;
  }
}

// Adds the parts directly, without first assembling the leaf in memory.
void StreamingTree::AddTo(std::span<const ArrayPart> parts, std::byte* sum) {
  for (const ArrayPart& part : parts) {
    const bool as_it_is = part.data != nullptr && part.element == element_ &&
                          (element_ == ElementType::kFloat64 || wire_ == FloatType::kFloat32);
    if (as_it_is) {
      Merge(sum, part.data, part.count);
      sum += part.count * element_bytes_;
      continue;
    }
    const size_t in_bytes = BytesOf(part.element);
    for (size_t begin = 0; begin < part.count;) {
      const size_t n = std::min(kConverted, part.count - begin);
      auto* const leaf = reinterpret_cast<std::byte*>(scratch_.data());
      const ArrayPart chunk = {part.data == nullptr ? nullptr : part.data + begin * in_bytes, n,
                               part.element};
      Copy({&chunk, 1}, leaf);
      Merge(sum, leaf, n);
      sum += n * element_bytes_;
      begin += n;
    }
  }
}

void StreamingTree::Add(std::span<const ArrayPart> parts) {
  CHECK(!complete());
  size_t total = 0;
  for (const ArrayPart& part : parts) total += part.count;
  CHECK(total == length_);
  const TreeBlock leaf = {next_leaf_++, 1};
  if (!stack_.empty() && AreHalves(stack_.back().block, leaf)) {
    AddTo(parts, stack_.back().array.get());
    stack_.back().block.size = 2;
  } else {
    stack_.push_back({leaf, TakeArray()});
    Copy(parts, stack_.back().array.get());
  }
  while (stack_.size() > 1) {
    Node& left = stack_[stack_.size() - 2];
    Node& right = stack_.back();
    if (!AreHalves(left.block, right.block)) break;
    Merge(left.array.get(), right.array.get(), length_);
    left.block.size *= 2;
    free_.push_back(std::move(right.array));
    stack_.pop_back();
  }
  if (complete())
    for (const Node& node : stack_) blocks_.push_back(node.array.get());
}

void StreamingTree::Clear() {
  for (Node& node : stack_) free_.push_back(std::move(node.array));
  stack_.clear();
  blocks_.clear();
  next_leaf_ = leaves_.begin;
}

}  // namespace renzan
