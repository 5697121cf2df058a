#include "renzan/model/ranking_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace renzan {
namespace {

TEST(RankingMetrics, AreTheirDefinitions) {
  RankingMetrics metrics(5);
  for (const int64_t rank : {1, 3, 3, 5}) metrics.Add(rank);
  EXPECT_EQ(metrics.rows(), 4);
  EXPECT_EQ(metrics.candidates(), 5);
  EXPECT_EQ(metrics.HitRate(1), 0.25);
  EXPECT_EQ(metrics.HitRate(2), 0.25);
  EXPECT_EQ(metrics.HitRate(3), 0.75);
  EXPECT_EQ(metrics.HitRate(5), 1);
  EXPECT_EQ(metrics.Ndcg(1), 0.25);
  EXPECT_EQ(metrics.Ndcg(4), (1 + 2 * 0.5) / 4);
  EXPECT_DOUBLE_EQ(metrics.Ndcg(5), (1 + 2 * 0.5 + 1 / std::log2(6.0)) / 4);
  EXPECT_DOUBLE_EQ(metrics.ReciprocalRank(), (1 + 2 / 3.0 + 1 / 5.0) / 4);
}

TEST(RankingMetrics, HaveNames) {
  RankingMetrics metrics(4);
  metrics.Add(3);
  using Named = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(NamedValues(metrics, std::vector<int64_t>{2, 4}),
            (Named{{"hr@2", 0}, {"ndcg@2", 0}, {"hr@4", 1}, {"ndcg@4", 0.5}, {"mrr", 1 / 3.0}}));
}

TEST(RankingMetrics, OfPartsAreThoseOfAll) {
  RankingMetrics all(9), first(9), second(9);
  for (int64_t row = 0; row < 40; ++row) {
    const int64_t rank = 1 + row * row % 9;
    all.Add(rank);
    (row % 3 == 0 ? first : second).Add(rank);
  }
  second.Merge(first.rows_of_rank());
  EXPECT_EQ(second.rows(), 40);
  EXPECT_EQ(second.Ndcg(4), all.Ndcg(4));
  EXPECT_EQ(second.ReciprocalRank(), all.ReciprocalRank());
}

TEST(RankingMetrics, OfNoRowsAreNaN) {
  EXPECT_TRUE(std::isnan(RankingMetrics(3).HitRate(1)));
  EXPECT_TRUE(std::isnan(RankingMetrics(3).Ndcg(1)));
  EXPECT_TRUE(std::isnan(RankingMetrics(3).ReciprocalRank()));
}

}  // namespace
}  // namespace renzan
