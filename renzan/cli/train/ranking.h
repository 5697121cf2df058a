#pragma once

// `renzan eval --ranking`: how high the items of positive rows rank among all candidates.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "renzan/cli/train/model_data.h"
#include "renzan/infer/rank_items.h"

namespace CLI {
class App;
}

namespace renzan {

struct RankingFlags {
  std::vector<int64_t> at;  // none: items are not ranked
  std::string items;        // a dataset; "": the training data
};

void AddRankingFlags(CLI::App& verb, RankingFlags& flags);

// By output; none without flags. Every rank calls it. `model`: what the user named.
class RankingOfEval {
 public:
  // Reads the candidates. Throws as ItemRanking does.
  RankingOfEval(const RankingFlags& flags, const std::string& model, const Predictor& predictor,
                const TrainConfig& config, Communicator& comm, const ModelRows& evaluated,
                std::span<const EvaluatedOutput> outputs);

  std::vector<Ranking> Rank(Predictor& predictor, Communicator& comm, int64_t batch_size) const;

 private:
  std::optional<ModelData> items_;
  std::optional<ItemRanking> ranking_;
};

nlohmann::ordered_json ToJson(const Ranking& ranking, std::span<const int64_t> at);
void Print(const Ranking& ranking, std::span<const int64_t> at);

}  // namespace renzan
