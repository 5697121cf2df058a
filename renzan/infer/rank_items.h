#pragma once

// Ranks the item of each positive row among all candidates, exactly, on all workers. Candidates are
// the distinct items of some rows and of the evaluated ones. Every rank makes the same calls and
// gets the same result, which does not depend on the number of workers or threads.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"
#include "renzan/infer/evaluate.h"
#include "renzan/infer/item_candidates.h"
#include "renzan/infer/predictor.h"
#include "renzan/model/item_ranks.h"
#include "renzan/model/ranking_metrics.h"

namespace renzan {

// Of one output.
struct Ranking {
  std::string output;          // its name; "" of the only one
  int64_t only_evaluated = 0;  // candidates that are only in the evaluated rows
  RankingMetrics metrics;      // of the positive rows
};

// How it was asked for, for errors.
struct RankingRequest {
  int64_t largest_k = 1;
  std::string key;  // "--ranking"
  ErrorCode code;   // if there are fewer candidates
};

class ItemRanking {
 public:
  // Reads all rows of both; a row in both counts as one of `items`. Ranks the outputs that are a
  // match. Throws kConfig if none is, or if items do not stand alone; request.code if there are
  // fewer candidates than the largest rank; kData if no evaluated row has the label 1 of one.
  ItemRanking(const Model& model, Communicator& comm, const ModelRows& evaluated,
              const ModelRows& items, std::span<const EvaluatedOutput> outputs,
              const RankingRequest& request);

  // Whether this output is ranked.
  bool Ranks(const std::string& output) const;

  // For each output that is ranked: how many candidates there are, the width of their vectors, and
  // how many rows are ranked at an evaluation.
  struct Size {
    std::string output;  // its name; "" of the only one
    int64_t candidates = 0, width = 0, rows = 0;
  };
  std::vector<Size> sizes() const;

  // Of memory, while items are ranked.
  int64_t bytes() const;

  // For each output that is a match; nothing if `should_stop` returned true. It is called after
  // every batch and must return the same on every rank. Throws kSoftware if an item has a vector
  // that is not finite.
  std::optional<std::vector<Ranking>> Rank(Predictor& model, Communicator& comm, int64_t batch_size,
                                           const std::function<bool()>& should_stop) const;

 private:
  struct RankedOutput {
    EvaluatedOutput output;
    size_t label = 0;  // its column
    MatchOutput match;
    ItemCandidates candidates;
    int64_t of_items = 0;  // the candidates from there on are only in the evaluated rows
    int64_t positives = 0;
  };
  void Read();
  // This worker's rows. Returns whether it was not stopped.
  bool RankRows(const RankedOutput& one, const ItemRanks& ranks, Predictor& model,
                Communicator& comm, int64_t batch_size, const std::function<bool()>& should_stop,
                RankingMetrics* metrics) const;
  void Check(const RankingRequest& request) const;

  ModelRows evaluated_, items_;
  std::vector<RankedOutput> outputs_;
};

}  // namespace renzan
