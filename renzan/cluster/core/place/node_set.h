#pragma once

// Bit sets of nodes, and an index of nodes by free resources. Both find the next node in a few
// instructions, so that a scheduling cycle can handle thousands of jobs. Not thread-safe.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace renzan::cluster {

class NodeSet {
 public:
  // With 0 nodes: an empty set that can be queried and merged, but not added to.
  explicit NodeSet(int nodes = 0) : words_((nodes + 63) / 64) {}

  void Add(int node) { words_[node / 64] |= uint64_t{1} << (node % 64); }
  void Remove(int node) { words_[node / 64] &= ~(uint64_t{1} << (node % 64)); }
  bool IsOfNoNodes() const { return words_.empty(); }
  bool Has(int node) const { return words_[node / 64] >> (node % 64) & 1; }

  // The first node at or after `from` that is in this set and in `other`; -1 if there is none.
  int NextInBoth(const NodeSet& other, int from) const {
    const int count = static_cast<int>(std::min(words_.size(), other.words_.size()));
    for (int at = from / 64; at < count; ++at) {
      uint64_t word = words_[at] & other.words_[at];
      if (at == from / 64) word &= ~uint64_t{0} << (from % 64);
      if (word != 0) return at * 64 + std::countr_zero(word);
    }
    return -1;
  }
  int Next(int from) const { return NextInBoth(*this, from); }

  NodeSet& operator|=(const NodeSet& other) {
    for (size_t at = 0; at < other.words_.size(); ++at) words_[at] |= other.words_[at];
    return *this;
  }
  NodeSet operator&(const NodeSet& other) const {
    NodeSet both = *this;
    for (size_t at = 0; at < words_.size(); ++at) both.words_[at] &= other.words_[at];
    return both;
  }

 private:
  std::vector<uint64_t> words_;
};

// Nodes by amount, in levels of one unit; larger amounts are in the last level.
class LevelIndex {
 public:
  static constexpr int kLevels = 65;

  LevelIndex(int nodes, int64_t unit)
      : unit_(std::max<int64_t>(unit, 1)), level_of_(nodes, -1), sets_(kLevels) {}

  int LevelOf(int64_t amount) const {
    return static_cast<int>(std::clamp<int64_t>(amount / unit_, 0, kLevels - 1));
  }
  void Set(int node, int64_t amount) {
    const int level = LevelOf(amount);
    if (level == level_of_[node]) return;
    if (level_of_[node] >= 0) sets_[level_of_[node]].Remove(node);
    // Allocated on first use: most levels stay empty, and every cycle builds an index.
    if (sets_[level].IsOfNoNodes()) sets_[level] = NodeSet(static_cast<int>(level_of_.size()));
    sets_[level].Add(node);
    level_of_[node] = level;
  }
  const NodeSet& at(int level) const { return sets_[level]; }
  // No node has more, except for those on the last level.
  int64_t Largest() const {
    int level = kLevels - 1;
    while (level > 0 && sets_[level].Next(0) < 0) --level;
    return level == kLevels - 1 ? std::numeric_limits<int64_t>::max() : (level + 1) * unit_ - 1;
  }

 private:
  int64_t unit_;
  std::vector<int> level_of_;
  std::vector<NodeSet> sets_;
};

}  // namespace renzan::cluster
