#include "renzan/model/item_ranks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "renzan/base/random_testing.h"

namespace renzan {
namespace {

// Small whole numbers, so that scores are exact and many are equal.
std::vector<float> WholeValues(size_t n, uint64_t seed) {
  std::vector<float> values = RandomValues(n, seed);
  for (float& value : values) value = std::round(2 * value);
  return values;
}

struct Ranked {
  int64_t items, width, queries;
  std::vector<float> item_vectors = WholeValues(static_cast<size_t>(items * width), 1);
  std::vector<float> query_vectors = WholeValues(static_cast<size_t>(queries * width), 2);
  std::vector<int64_t> own = [this] {
    std::vector<int64_t> of;
    for (int64_t q = 0; q < queries; ++q) of.push_back((q * 37 + 5) % items);
    return of;
  }();

  double Score(int64_t query, int64_t item) const {
    double score = 0;
    for (int64_t c = 0; c < width; ++c)
      score += double{query_vectors[static_cast<size_t>(query * width + c)]} *
               double{item_vectors[static_cast<size_t>(item * width + c)]};
    return score;
  }
  std::vector<int64_t> Ranks(int threads, int64_t first = 0, int64_t last = -1) const {
    ItemRanks ranks(items, width);
    // In two parts, the second one first.
    const int64_t half = items / 2 * width;
    ranks.Set(items / 2, std::span(item_vectors).subspan(static_cast<size_t>(half)));
    ranks.Set(0, std::span(item_vectors).first(static_cast<size_t>(half)));
    const size_t n = static_cast<size_t>((last < 0 ? queries : last) - first);
    std::vector<int64_t> result(n);
    ThreadPool pool(threads);
    ranks.Rank(std::span(query_vectors)
                   .subspan(static_cast<size_t>(first * width), n * static_cast<size_t>(width)),
               std::span(own).subspan(static_cast<size_t>(first), n), pool, result);
    return result;
  }
};

TEST(ItemRanks, CountWhatIsNotBehind) {
  for (const Ranked& ranked :
       {Ranked{1, 1, 3}, Ranked{17, 3, 70}, Ranked{530, 8, 9}, Ranked{1100, 33, 130}}) {
    const std::vector<int64_t> ranks = ranked.Ranks(1);
    int64_t ties = 0;
    for (int64_t q = 0; q < ranked.queries; ++q) {
      const int64_t own = ranked.own[static_cast<size_t>(q)];
      int64_t rank = 1;
      for (int64_t item = 0; item < ranked.items; ++item) {
        if (item == own) continue;
        rank += ranked.Score(q, item) >= ranked.Score(q, own);
        ties += ranked.Score(q, item) == ranked.Score(q, own);
      }
      EXPECT_EQ(ranks[static_cast<size_t>(q)], rank);
    }
    if (ranked.items > 1) {
      EXPECT_GT(ties, 0);
    }
  }
}

TEST(ItemRanks, DependNeitherOnThreadsNorOnTheSplit) {
  Ranked ranked{700, 20, 150};
  ranked.item_vectors = RandomValues(700 * 20, 4);
  ranked.query_vectors = RandomValues(150 * 20, 5);
  const std::vector<int64_t> ranks = ranked.Ranks(1);
  EXPECT_EQ(ranked.Ranks(3), ranks);
  std::vector<int64_t> parts = ranked.Ranks(2, 0, 41), rest = ranked.Ranks(1, 41);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, ranks);
}

TEST(ItemRanks, OfAModelWithOneScoreAreLast) {
  Ranked ranked{100, 4, 5};
  std::fill(ranked.query_vectors.begin(), ranked.query_vectors.end(), 0.0f);
  EXPECT_EQ(ranked.Ranks(1), std::vector<int64_t>(5, 100));
  ranked.query_vectors[0] = NAN;
  EXPECT_EQ(ranked.Ranks(1)[0], 100);
}

}  // namespace
}  // namespace renzan
