#include "renzan/model/ranking_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// The mean of gain(rank) over rows with ranks up to k, as a sum in the order of ranks.
template <typename Gain>
double MeanGain(const RankingMetrics& metrics, int64_t k, const Gain& gain) {
  double sum = 0;
  for (int64_t rank = 1; rank <= std::min(k, metrics.candidates()); ++rank)
    if (const int64_t rows = metrics.rows_of_rank()[static_cast<size_t>(rank)]; rows > 0)
      sum += static_cast<double>(rows) * gain(static_cast<double>(rank));
  return sum / static_cast<double>(metrics.rows());
}

}  // namespace

void RankingMetrics::Merge(std::span<const int64_t> rows_of_rank) {
  CHECK(rows_of_rank.size() == rows_of_rank_.size());
  for (size_t rank = 0; rank < rows_of_rank.size(); ++rank)
    rows_of_rank_[rank] += rows_of_rank[rank];
}

int64_t RankingMetrics::rows() const {
  return std::accumulate(rows_of_rank_.begin(), rows_of_rank_.end(), int64_t{0});
}

double RankingMetrics::HitRate(int64_t k) const {
  return MeanGain(*this, k, [](double) { return 1.0; });
}

double RankingMetrics::Ndcg(int64_t k) const {
  return MeanGain(*this, k, [](double rank) { return 1 / std::log2(1 + rank); });
}

double RankingMetrics::ReciprocalRank() const {
  return MeanGain(*this, candidates(), [](double rank) { return 1 / rank; });
}

std::vector<std::pair<std::string, double>> NamedValues(const RankingMetrics& metrics,
                                                        std::span<const int64_t> ranks) {
  std::vector<std::pair<std::string, double>> values;
  for (const int64_t k : ranks) {
    values.emplace_back(fmt::format("hr@{}", k), metrics.HitRate(k));
    values.emplace_back(fmt::format("ndcg@{}", k), metrics.Ndcg(k));
  }
  values.emplace_back("mrr", metrics.ReciprocalRank());
  return values;
}

}  // namespace renzan
