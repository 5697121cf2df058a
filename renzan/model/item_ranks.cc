#include "renzan/model/item_ranks.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

// A tile's vectors and the scores of a group of queries stay in the cache.
constexpr int64_t kItemsOfTile = 512, kQueriesOfGroup = 64;
constexpr int64_t kItemLanes = BlockedMatrix::kLanes;

float* ValueOf(RightOperand* operand, int64_t column, int64_t row) {
  return operand->lanes().block(column / kItemLanes) + row * kItemLanes + column % kItemLanes;
}
float ValueOf(const RightOperand& operand, int64_t column, int64_t row) {
  return operand.lanes().block(column / kItemLanes)[row * kItemLanes + column % kItemLanes];
}

// How many of n scores are not less than this one.
int64_t CountAhead(const float* scores, int64_t n, float own) {
  int32_t ahead = 0;
  for (int64_t i = 0; i < n; ++i) ahead += scores[i] < own ? 0 : 1;
  return ahead;
}

}  // namespace

// Of a thread.
struct ItemRanks::Scratch {
  explicit Scratch(int64_t width) : own(width, kQueriesOfGroup, Precision::kFloat32) {}
  BlockedMatrix queries, scores;
  RightOperand own;  // the group's items
  std::vector<float> scores_of_own;
};

ItemRanks::ItemRanks(int64_t count, int64_t width) : count_(count), width_(width) {
  for (int64_t first = 0; first < count; first += kItemsOfTile)
    tiles_.emplace_back(width, std::min(kItemsOfTile, count - first), Precision::kFloat32);
}

void ItemRanks::Set(int64_t first, std::span<const float> vectors) {
  const int64_t n = std::ssize(vectors) / width_;
  CHECK(first >= 0 && first + n <= count_ && n * width_ == std::ssize(vectors));
  const float* value = vectors.data();
  for (int64_t item = first; item < first + n; ++item)
    for (int64_t row = 0; row < width_; ++row)
      *ValueOf(&tiles_[static_cast<size_t>(item / kItemsOfTile)], item % kItemsOfTile, row) =
          *value++;
}

void ItemRanks::Rank(std::span<const float> queries, std::span<const int64_t> own, ThreadPool& pool,
                     std::span<int64_t> ranks) const {
  const int64_t n = std::ssize(own), threads = pool.num_threads();
  CHECK(std::ssize(queries) == n * width_ && ranks.size() == own.size());
  const int64_t group = std::clamp<int64_t>((n + threads - 1) / threads, 1, kQueriesOfGroup);
  std::vector<Scratch> scratch;
  for (int64_t thread = 0; thread < threads; ++thread) scratch.emplace_back(width_);
  pool.ParallelTasks(static_cast<size_t>((n + group - 1) / group), [&](int thread, size_t task) {
    const size_t first = task * static_cast<size_t>(group);
    const size_t size = std::min(static_cast<size_t>(group), own.size() - first);
    const size_t width = static_cast<size_t>(width_);
    RankGroup(queries.subspan(first * width, size * width), own.subspan(first, size),
              &scratch[static_cast<size_t>(thread)], ranks.subspan(first, size));
  });
}

void ItemRanks::RankGroup(std::span<const float> queries, std::span<const int64_t> own,
                          Scratch* scratch, std::span<int64_t> ranks) const {
  const int64_t n = std::ssize(own);
  scratch->queries.Reshape(n, width_);
  scratch->queries.SetColumns(0, queries.data(), width_);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t item = own[static_cast<size_t>(i)];
    const RightOperand& tile = tiles_.at(static_cast<size_t>(item / kItemsOfTile));
    for (int64_t row = 0; row < width_; ++row)
      *ValueOf(&scratch->own, i, row) = ValueOf(tile, item % kItemsOfTile, row);
  }
  // An item's score has the same bits here and among those of its tile.
  scratch->scores.Reshape(n, kQueriesOfGroup);
  Gemm(scratch->queries, scratch->own, {}, &scratch->scores);
  scratch->scores_of_own.resize(own.size());
  for (int64_t i = 0; i < n; ++i)
    scratch->scores_of_own[static_cast<size_t>(i)] = scratch->scores.at(i, i);
  std::fill(ranks.begin(), ranks.end(), int64_t{0});
  for (const RightOperand& tile : tiles_) {
    scratch->scores.Reshape(n, tile.columns());
    Gemm(scratch->queries, tile, {}, &scratch->scores);
    for (int64_t block = 0; block < scratch->scores.num_blocks(); ++block) {
      const float* scores = scratch->scores.block(block);
      const int64_t size = std::min(kItemLanes, tile.columns() - block * kItemLanes);
      for (size_t i = 0; i < ranks.size(); ++i, scores += kItemLanes)
        ranks[i] += size == kItemLanes ? CountAhead(scores, kItemLanes, scratch->scores_of_own[i])
                                       : CountAhead(scores, size, scratch->scores_of_own[i]);
    }
  }
}

}  // namespace renzan
