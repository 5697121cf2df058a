#pragma once

// How high the items of rows rank among all candidates. Accumulates counts of rows by rank, so the
// results depend neither on the order of the rows nor on how they are split among threads and
// workers. Every row has one item, so recall at k is the hit rate, and the ideal DCG is 1.
//
// Not thread-safe.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace renzan {

class RankingMetrics {
 public:
  // Ranks are from 1 to `candidates`.
  explicit RankingMetrics(int64_t candidates)
      : rows_of_rank_(static_cast<size_t>(candidates + 1)) {}

  void Add(int64_t rank) { ++rows_of_rank_.at(static_cast<size_t>(rank)); }
  void Merge(std::span<const int64_t> rows_of_rank);

  // [candidates + 1], by rank; none has rank 0.
  std::span<const int64_t> rows_of_rank() const { return rows_of_rank_; }
  int64_t candidates() const { return static_cast<int64_t>(rows_of_rank_.size()) - 1; }
  int64_t rows() const;

  // All of these are NaN if there are no rows.
  double HitRate(int64_t k) const;  // the share of rows whose item is among the first k
  // The mean of 1 / log2(1 + rank), or 0 after rank k (Järvelin and Kekäläinen, "Cumulated
  // gain-based evaluation of IR techniques", 2002).
  double Ndcg(int64_t k) const;
  double ReciprocalRank() const;  // the mean of 1 / rank

 private:
  std::vector<int64_t> rows_of_rank_;
};

// By name: hr@K and ndcg@K for each rank K, and mrr.
std::vector<std::pair<std::string, double>> NamedValues(const RankingMetrics& metrics,
                                                        std::span<const int64_t> ranks);

}  // namespace renzan
