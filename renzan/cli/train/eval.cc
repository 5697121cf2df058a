// renzan eval MODEL [--data DIR] [--group-by COLUMN] [--ranking K,...]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/train/ranking.h"
#include "renzan/cli/train/saved_model.h"
#include "renzan/cli/verbs.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/value_names.h"
#include "renzan/infer/group_auc.h"
#include "renzan/infer/row_groups.h"
#include "renzan/model/grouped_metrics.h"
#include "renzan/run/splits.h"

namespace renzan {
namespace {

struct EvalFlags {
  SavedModelFlags model;
  std::string group_by;
  int top = 20;
  RankingFlags ranking;
  bool json = false;
};

// `first`: what precedes the scores.
template <typename Metrics>
nlohmann::ordered_json ToJson(nlohmann::ordered_json first, OutputKind kind,
                              const Metrics& metrics) {
  ForEachMetric(kind, metrics, [&](const OutputMetric& metric, double value) {
    if (metric.words != nullptr) first[metric.name] = value;
  });
  return first;
}

// What was added to the logits, and why.
struct Shift {
  double of_model = 1, of_data = 1;  // shares of the negatives

  float value() const { return LogitShift(of_model, of_data); }
  // Of a score, it changes nothing that is shown.
  bool applies_to(OutputKind kind) const {
    return kind == OutputKind::kProbability && value() != 0;
  }
};

nlohmann::ordered_json ToJson(const Evaluation& evaluation, OutputKind kind, const Shift& shift,
                              const std::string& weight) {
  nlohmann::ordered_json out =
      ToJson({{"rows", evaluation.metrics.count}}, kind, evaluation.metrics);
  if (shift.applies_to(kind)) out["logit_shift"] = shift.value();
  if (const auto& weighted = evaluation.weighted)
    out["weighted"] =
        ToJson({{"column", weight}, {"sum_of_weights", weighted->SumOfWeights()}}, kind, *weighted);
  return out;
}

// `best_auc`: follows the AUC.
template <typename Metrics>
void PrintScores(OutputKind kind, const Metrics& metrics, const std::string& best_auc) {
  ForEachMetric(kind, metrics, [&](const OutputMetric& metric, double value) {
    if (metric.words == nullptr) return;
    fmt::print("{:<18}  {}{}\n", metric.words, fmt::format(fmt::runtime(metric.table), value),
               metric.value == &OutputMetrics::Auc ? best_auc : "");
  });
}

void Print(const EvaluatedOutput& output, const Evaluation& evaluation, const Shift& shift,
           const Dataset& dataset) {
  if (!output.name.empty()) fmt::print("{}\n", output.name);
  fmt::print("rows                {}\n", evaluation.metrics.count);
  // Generated data have one label.
  const std::optional<BayesOptimal>& best = dataset.bayes_optimal();
  PrintScores(output.kind(), evaluation.metrics,
              best ? fmt::format("  (Bayes-optimal {:.5f})", best->best_auc) : "");
  if (shift.applies_to(output.kind()))
    fmt::print("logit shift         {:.4f}  (trained on {}, the dataset has {})\n", shift.value(),
               NegativesText(shift.of_model), NegativesText(shift.of_data));
  if (!evaluation.weighted) return;
  fmt::print("\nrows weighted by '{}'\n", dataset.schema().weight);
  PrintScores(output.kind(), *evaluation.weighted, "");
}

// Totals over the groups with both classes.
struct Ranked {
  int64_t groups = 0, rows = 0;
};

Ranked CountRanked(std::span<const GroupMetrics> groups) {
  Ranked ranked;
  for (const GroupMetrics& group : groups) {
    if (std::isnan(group.scores.auc)) continue;
    ++ranked.groups;
    ranked.rows += group.count;
  }
  return ranked;
}

// What groups are called: the values of a feature, or the texts of a key.
class GroupNames {
 public:
  GroupNames(const RowGroups& groups, const Dataset& dataset) : key_(groups.key()) {
    if (key_ == nullptr) values_.emplace(dataset, groups.feature());
  }

  bool known() const { return key_ != nullptr || values_->known(); }
  bool are_texts() const { return key_ != nullptr || (values_->known() && !values_->are_ids()); }
  std::string Shown(int64_t group) const {
    if (key_ == nullptr) return values_->Shown(group);
    const std::string_view text = key_->Text(group);
    return text.empty() ? "(empty)" : std::string(text);
  }
  // With the value if it is known: null for missing values and for those that the vocabulary lacks.
  nlohmann::ordered_json ToJson(int64_t group) const {
    if (key_ != nullptr) return {{"value", std::string(key_->Text(group))}};
    nlohmann::ordered_json json = {{"id", group}};
    if (!values_->known()) return json;
    json["value"] = nullptr;
    if (values_->are_ids()) {
      json["value"] = group;
    } else if (const std::optional<std::string> value = values_->Value(group)) {
      json["value"] = *value;
    }
    return json;
  }

 private:
  const KeyGroups* key_;
  std::optional<ValueNames> values_;
};

// The metrics that groups of rows have.
std::vector<const OutputMetric*> MetricsOfGroups(OutputKind kind) {
  std::vector<const OutputMetric*> metrics;
  for (const OutputMetric& metric : AllMetrics())
    if (metric.of_group != nullptr && metric.IsOf(kind)) metrics.push_back(&metric);
  return metrics;
}

nlohmann::ordered_json ToJson(const GroupScores& scores, OutputKind kind) {
  nlohmann::ordered_json out;
  for (const OutputMetric* metric : MetricsOfGroups(kind))
    out[metric->name] = scores.*metric->of_group;
  return out;
}

nlohmann::ordered_json ToJson(OutputKind kind, const std::string& column, const GroupNames& names,
                              std::span<const GroupMetrics> groups, size_t top,
                              const std::string& weight) {
  const Ranked ranked = CountRanked(groups);
  nlohmann::ordered_json largest = nlohmann::ordered_json::array();
  for (const GroupMetrics& group : groups.first(std::min(top, groups.size()))) {
    largest.push_back(names.ToJson(group.group));
    largest.back().update({{"rows", group.count}, {"positives", group.positives}});
    largest.back().update(ToJson(group.scores, kind));
    if (!group.weighted) continue;
    nlohmann::ordered_json weighted = {{"sum_of_weights", group.weighted->rows}};
    weighted.update(ToJson(*group.weighted, kind));
    largest.back()["weighted"] = std::move(weighted);
  }
  nlohmann::ordered_json out = {{"column", column},
                                {"group_auc", GroupAuc(groups)},
                                {"groups", groups.size()},
                                {"groups_with_both_classes", ranked.groups},
                                {"rows_with_both_classes", ranked.rows}};
  if (!weight.empty())
    out["weighted"] = {{"column", weight}, {"group_auc", GroupAuc(groups, true)}};
  out["largest"] = std::move(largest);
  return out;
}

void Print(OutputKind kind, const std::string& column, const GroupNames& names,
           std::span<const GroupMetrics> groups, size_t top, const std::string& weight) {
  constexpr size_t kShown = 60;  // bytes of a value
  const Ranked ranked = CountRanked(groups);
  fmt::print("\ngroup AUC           {:.5f}  ({} of {} by {} with both classes: {})\n",
             GroupAuc(groups), ranked.groups, Counted(groups.size(), "group"), column,
             Counted(ranked.rows, "row"));
  if (!weight.empty())
    fmt::print("weighted            {:.5f}  (by '{}')\n", GroupAuc(groups, true), weight);
  fmt::print("\n");
  std::vector<Table::Column> columns = {
      {names.known() ? column : column + " (id)", names.are_texts() ? Table::Align::kLeft : kRight},
      {"rows", kRight},
      {"positive", kRight}};
  const std::vector<const OutputMetric*> metrics = MetricsOfGroups(kind);
  for (const OutputMetric* metric : metrics) columns.push_back({metric->words, kRight});
  if (!weight.empty()) columns.push_back({"weight", kRight});
  for (const OutputMetric* metric : metrics)
    if (!weight.empty())
      columns.push_back(
          {(metric == metrics.front() ? "weighted " : "") + std::string(metric->words), kRight});
  Table table(columns);
  for (const GroupMetrics& group : groups.first(std::min(top, groups.size()))) {
    const double rate = static_cast<double>(group.positives) / static_cast<double>(group.count);
    std::vector<std::string> cells = {Escape(ShortText(names.Shown(group.group), kShown)),
                                      fmt::format("{}", group.count),
                                      fmt::format("{:.2f} %", 100 * rate)};
    const auto add = [&](const GroupScores& scores) {
      for (const OutputMetric* metric : metrics) {
        const double value = scores.*metric->of_group;
        cells.push_back(std::isnan(value) ? "" : fmt::format(fmt::runtime(metric->table), value));
      }
    };
    add(group.scores);
    if (group.weighted) {
      cells.push_back(fmt::format("{:.6g}", group.weighted->rows));
      add(*group.weighted);
    }
    table.Add(cells);
  }
  fmt::print("{}", table.Text());
  if (top < groups.size()) fmt::print("... and {} smaller ones\n", groups.size() - top);
}

// Otherwise the scores of the other rows would look like those of a working model.
void FailUnlessFinite(const OutputMetrics& metrics) {
  if (metrics.non_finite > 0)
    Fail(ErrorCode::kSoftware,
         "{} of {} predictions are NaN or infinite, so there is no score: the model cannot be "
         "used, or the data hold values far outside the range it was trained on",
         metrics.non_finite, metrics.count + metrics.non_finite);
}

// What is measured of one output.
struct MeasuredOutput {
  Evaluation evaluation;
  std::vector<GroupMetrics> groups;  // none if it is a number
};

// Predicts all rows on all workers; on rank 0 their labels and `groups` are read, too.
std::vector<MeasuredOutput> MeasureGroups(Predictor& model, Communicator& comm,
                                          const Dataset& dataset, RowRange rows,
                                          std::span<const EvaluatedOutput> outputs,
                                          const RowGroups* groups, int64_t batch_size,
                                          std::span<const float> shifts) {
  const std::vector<size_t> labels = LabelColumns(outputs, dataset);
  std::vector<MeasuredOutput> measured(outputs.size());
  std::vector<GroupedMetrics> grouped;
  for (MeasuredOutput& one : measured) {
    one.evaluation.weighted = MakeWeightedMetrics(dataset);
    grouped.push_back(MakeGroupedMetrics(dataset));
  }
  int64_t next = rows.begin;
  Batch batch;
  PredictRows(model, comm, dataset, rows, batch_size, shifts, [&](const LogitsByOutput& logits) {
    if (logits[0].empty()) return;  // on the other ranks
    const int64_t first = next;
    std::vector<int64_t> numbers(logits[0].size());
    for (int64_t& number : numbers) number = next++;
    dataset.Read(numbers, &batch);
    for (size_t i = 0; i < outputs.size(); ++i) {
      Evaluation& evaluation = measured[i].evaluation;
      const auto of_output = logits[outputs[i].output];
      const auto its = batch.labels(labels[i]);
      const Loss loss = outputs[i].loss;
      evaluation.metrics.AddBy(loss, of_output, its);
      if (evaluation.weighted) evaluation.weighted->AddBy(loss, of_output, its, batch.weight);
      if (!HasGroups(outputs[i])) continue;
      grouped[i].Add(groups->Of(first, batch.size, batch), of_output, its, batch.weight);
    }
  });
  for (size_t i = 0; i < outputs.size(); ++i) measured[i].groups = grouped[i].Groups();
  return measured;
}

void WarnOfUnseen(const std::string& column, const Dataset& dataset, const RowGroups& groups,
                  std::span<const MeasuredOutput> outputs) {
  for (const MeasuredOutput& output : outputs) {
    int64_t rows = 0, unseen = 0;
    for (const GroupMetrics& group : output.groups) {
      rows += group.count;
      if (group.group == groups.unseen()) unseen += group.count;
    }
    const std::string advice = UnseenGroupAdvice(column, dataset, unseen, rows);
    if (!advice.empty()) return LogWarning("--group-by {}: {}", Escape(column), advice);
  }
}

void Eval(const EvalFlags& flags, Predictor& model, const TrainConfig& config, Communicator& comm,
          const Dataset& dataset, RowRange rows) {
  CheckHasLabels(dataset);
  const int64_t batch_size = config.training.batch_size;
  const size_t top = static_cast<size_t>(flags.top);
  const Shift shift{config.features.negatives_kept, dataset.schema().negatives_kept};
  const std::string& weight = dataset.schema().weight;
  const std::vector<ModelOutput> all_outputs = OutputsOf(config.model);
  const std::vector<EvaluatedOutput> outputs =
      EvaluatedOutputs(model.model(), config.features.label);
  const RankingOfEval ranking(flags.ranking, flags.model.model, model, config, comm,
                              {&dataset, rows, model.known_ids()}, outputs);
  std::vector<MeasuredOutput> measured;
  std::optional<RowGroups> groups;  // on rank 0
  if (flags.group_by.empty()) {
    auto evaluations = Evaluate(model, comm, dataset, rows, outputs, batch_size, shift.value(),
                                nullptr, [] { return false; });
    for (Evaluation& evaluation : *evaluations) measured.push_back({std::move(evaluation), {}});
  } else {
    const GroupRequest request{"--group-by", ErrorCode::kUsage};
    CheckCanGroup(flags.group_by, dataset, request);
    CheckGroupsHaveScores(outputs, {"--group-by:", ErrorCode::kUsage});
    RunWithHeartbeats(comm, [&] {
      if (comm.rank() == 0) groups.emplace(flags.group_by, dataset, rows, request);
    });
    measured = MeasureGroups(model, comm, dataset, rows, outputs, groups ? &*groups : nullptr,
                             batch_size, ShiftsOf(all_outputs, shift.value()));
  }
  const std::vector<Ranking> rankings = ranking.Rank(model, comm, batch_size);
  if (comm.rank() != 0) return;
  for (const MeasuredOutput& one : measured) FailUnlessFinite(one.evaluation.metrics);
  std::optional<GroupNames> names;
  if (groups) names.emplace(*groups, dataset);
  if (groups) WarnOfUnseen(flags.group_by, dataset, *groups, measured);
  nlohmann::ordered_json all;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [evaluation, its_groups] = measured[i];
    const auto its = std::find_if(rankings.begin(), rankings.end(), [&](const Ranking& each) {
      return each.output == outputs[i].name;
    });
    if (!flags.json) {
      if (i > 0) fmt::print("\n");
      Print(outputs[i], evaluation, shift, dataset);
      if (its != rankings.end()) Print(*its, flags.ranking.at);
      if (names && HasGroups(outputs[i]))
        Print(outputs[i].kind(), flags.group_by, *names, its_groups, top, weight);
      continue;
    }
    nlohmann::ordered_json one = ToJson(evaluation, outputs[i].kind(), shift, weight);
    if (its != rankings.end()) one["ranking"] = ToJson(*its, flags.ranking.at);
    if (names && HasGroups(outputs[i]))
      one["group_by"] = ToJson(outputs[i].kind(), flags.group_by, *names, its_groups, top, weight);
    if (outputs[i].name.empty()) {
      all = std::move(one);
    } else {
      all["outputs"][outputs[i].name] = std::move(one);
    }
  }
  // The texts of a vocabulary may be in any encoding.
  if (flags.json)
    fmt::print("{}\n", all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void AddEvalVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("eval", "Measure a trained model on a dataset");
  const auto flags = std::make_shared<EvalFlags>();
  AddSavedModelFlags(*verb, flags->model, /*needs_data=*/false);
  verb->add_option(
      "--group-by", flags->group_by,
      "Also report metrics for each text of this key, or value of this categorical feature (each "
      "id, where values were hashed), and the mean of their AUCs weighted by rows (group AUC)");
  verb->add_option("--top", flags->top, "How many of the largest groups to show")
      ->check(AtLeast(0));
  AddRankingFlags(*verb, flags->ranking);
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->footer(
      "Examples:\n"
      "  renzan eval runs/dlrm-2026-01-31T12:00:00Z\n"
      "  renzan eval runs/dlrm-2026-01-31T12:00:00Z --data data/test\n"
      "  renzan eval runs/dlrm-2026-01-31T12:00:00Z --data data/test --group-by C3 --top 10\n"
      "  renzan eval runs/towers-2026-01-31T12:00:00Z --data data/test --ranking 10,20");
  verb->callback([flags, &exit_status] {
    exit_status = WithSavedModel(
        flags->model,
        [&](Predictor& model, const TrainConfig& config, Communicator& comm, const Dataset& dataset,
            RowRange rows) { Eval(*flags, model, config, comm, dataset, rows); });
  });
}

}  // namespace renzan
