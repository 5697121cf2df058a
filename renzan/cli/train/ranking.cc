#include "renzan/cli/train/ranking.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/at_least.h"
#include "renzan/run/splits.h"

namespace renzan {
namespace {

// The training data, or else what is evaluated.
SplitConfig ItemsOf(const RankingFlags& flags, const TrainConfig& config) {
  return flags.items.empty() ? config.data.train : SplitConfig{.path = flags.items};
}

ModelData OpenItems(const RankingFlags& flags, const std::string& model, const SplitConfig& items,
                    const TrainConfig& config, Communicator& comm) {
  std::optional<DataOfRun> of_run;
  if (flags.items.empty()) of_run = DataOfRun{model, "--items"};
  try {
    return OpenModelData(items.path, config, of_run, comm);
  } catch (const Error& error) {
    if (!flags.items.empty() || error.code() != ErrorCode::kNoInput) throw;
    Fail(error.code(),
         "{} (the ranked items are those of the training data: name others with --items DIR)",
         error.what());
  }
}

}  // namespace

void AddRankingFlags(CLI::App& verb, RankingFlags& flags) {
  verb.add_option("--ranking", flags.at,
                  "Also rank the item of each positive row among all items, and report the hit "
                  "rate and NDCG at these ranks, and the mean reciprocal rank: --ranking 10,20. "
                  "For models that match a query and an item")
      ->delimiter(',')
      ->type_name("K,...")
      ->allow_extra_args(false)
      ->check(AtLeast(1));
  verb.add_option("--items", flags.items,
                  "Dataset whose items are ranked, beside those of the evaluated rows (default: "
                  "data.train of the model's configuration)")
      ->type_name("DIR")
      ->needs("--ranking");
}

RankingOfEval::RankingOfEval(const RankingFlags& flags, const std::string& model,
                             const Predictor& predictor, const TrainConfig& config,
                             Communicator& comm, const ModelRows& evaluated,
                             std::span<const EvaluatedOutput> outputs) {
  if (flags.at.empty()) return;
  const SplitConfig split = ItemsOf(flags, config);
  ModelRows items = evaluated;
  if (!split.path.empty()) {
    items_ = OpenItems(flags, model, split, config, comm);
    items = items_->rows(ResolveRows(split.rows, *items_->dataset, "data.train.rows"));
  }
  if (comm.rank() == 0 && flags.items.empty())
    LogInfo("ranks the items of {}the evaluated rows",
            split.path.empty() ? "" : Describe(split) + " and of ");
  ranking_.emplace(predictor.model(), comm, evaluated, items, outputs,
                   RankingRequest{*std::max_element(flags.at.begin(), flags.at.end()), "--ranking",
                                  ErrorCode::kUsage});
}

std::vector<Ranking> RankingOfEval::Rank(Predictor& predictor, Communicator& comm,
                                         int64_t batch_size) const {
  if (!ranking_) return {};
  return *ranking_->Rank(predictor, comm, batch_size, [] { return false; });
}

nlohmann::ordered_json ToJson(const Ranking& ranking, std::span<const int64_t> at) {
  nlohmann::ordered_json out = {{"candidates", ranking.metrics.candidates()},
                                {"only_in_evaluated_rows", ranking.only_evaluated},
                                {"ranked_rows", ranking.metrics.rows()}};
  for (const auto& [name, value] : NamedValues(ranking.metrics, at)) out[name] = value;
  return out;
}

void Print(const Ranking& ranking, std::span<const int64_t> at) {
  const RankingMetrics& metrics = ranking.metrics;
  fmt::print("\ncandidates          {}{}\n", metrics.candidates(),
             ranking.only_evaluated == 0
                 ? ""
                 : fmt::format("  ({} only in the evaluated rows)", ranking.only_evaluated));
  fmt::print("ranked rows         {}\n", metrics.rows());
  for (auto [name, value] : NamedValues(metrics, at)) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    fmt::print("{:<18}  {:.5f}\n", name, value);
  }
}

}  // namespace renzan
