// renzan data inspect DIR, renzan data verify DIR

#include "renzan/data/inspect.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/cli/data/verbs.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/text/table.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/label_summary.h"

namespace renzan {
namespace {

bool IsDense(const FeatureSummary& feature) {
  return feature.kind == "dense" || feature.kind == "vector";
}

// A mean of labels: null without labels. Of 0 and 1 it is a rate.
nlohmann::ordered_json MeanJson(const Dataset& dataset, double mean) {
  nlohmann::ordered_json json;
  if (dataset.schema().has_labels()) json = mean;
  return json;
}

const char* MeanKey(const Dataset& dataset) {
  return dataset.schema().first_label_is_number() ? "label_mean" : "label_rate";
}

nlohmann::ordered_json ToJson(const NumberSummary& numbers) {
  return {{"min", numbers.min}, {"mean", numbers.mean}, {"max", numbers.max}};
}

nlohmann::ordered_json ToJson(const WeightSummary& weights) {
  return {
      {"name", weights.name}, {"min", weights.min}, {"mean", weights.mean}, {"max", weights.max}};
}

nlohmann::ordered_json ToJson(const Dataset& dataset, const FeatureSummary& feature) {
  nlohmann::ordered_json top = nlohmann::ordered_json::array();
  for (const TopValue& value : feature.top)
    top.push_back({{"value", value.value},
                   {"count", value.count},
                   {MeanKey(dataset), MeanJson(dataset, value.label_mean)}});
  nlohmann::ordered_json out = {
      {"name", feature.name},         {"kind", feature.kind},
      {"values", feature.values},     {"missing", nullptr},
      {"distinct", feature.distinct}, {"distinct_capped", feature.distinct_capped}};
  if (feature.missing >= 0) out["missing"] = feature.missing;
  if (feature.kind == "vector") out["dimension"] = feature.dimension;
  if (IsDense(feature)) {
    out["min"] = feature.min;
    out["mean"] = feature.mean;
    out["max"] = feature.max;
  } else {
    out["num_embeddings"] = feature.num_embeddings;
    out["vocabulary"] = feature.vocabulary;
    const WeightSummary& weights = dataset.manifest().features.at(feature.name).weights;
    if (!weights.name.empty()) out["weights"] = ToJson(weights);
  }
  out["top"] = std::move(top);
  return out;
}

void PrintJson(const Dataset& dataset, const DatasetSummary& summary) {
  nlohmann::ordered_json out = {{"directory", dataset.directory()},
                                {"fingerprint", dataset.fingerprint()},
                                {"rows", summary.rows},
                                {"label", nullptr},
                                {MeanKey(dataset), MeanJson(dataset, summary.label_mean)}};
  if (dataset.schema().has_labels()) out["label"] = dataset.schema().label;
  if (dataset.schema().label_optional) out["labelled_rows"] = dataset.manifest().labelled_rows;
  if (const auto& numbers = dataset.manifest().number_labels;
      numbers.contains(dataset.schema().label))
    out["label_values"] = ToJson(numbers.at(dataset.schema().label));
  if (const auto further = FurtherLabelsOf(dataset.manifest()); !further.empty()) {
    out["further_labels"] = nlohmann::ordered_json::array();
    for (const FurtherLabelSummary& label : further) {
      nlohmann::ordered_json one = {{"name", label.name}, {"rows", label.rows}};
      if (label.numbers)
        one["label_values"] = ToJson(*label.numbers);
      else
        one["positive_rows"] = label.positive_rows;
      out["further_labels"].push_back(std::move(one));
    }
  }
  if (const WeightSummary& weight = dataset.manifest().weight; !weight.name.empty())
    out["weight"] = ToJson(weight);
  if (const double kept = dataset.schema().negatives_kept; kept != 1) out["negatives_kept"] = kept;
  if (!dataset.manifest().keys.empty()) out["keys"] = dataset.manifest().keys;
  if (dataset.bayes_optimal())
    out["generated"] = {{"best_auc", dataset.bayes_optimal()->best_auc},
                        {"best_log_loss", dataset.bayes_optimal()->best_log_loss}};
  out["features"] = nlohmann::ordered_json::array();
  for (const FeatureSummary& feature : summary.features)
    out["features"].push_back(ToJson(dataset, feature));
  // The texts of a vocabulary may be in any encoding.
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string DescribeFirstLabel(const Dataset& dataset, const DatasetSummary& summary) {
  const std::string& label = dataset.schema().label;
  if (label.empty()) return "no labels";
  if (dataset.schema().label_optional && dataset.manifest().labelled_rows == 0)
    return fmt::format("label '{}', which none of them has", label);
  const std::string where = dataset.schema().label_optional
                                ? fmt::format(" in {} of them", dataset.manifest().labelled_rows)
                                : "";
  if (const auto& numbers = dataset.manifest().number_labels; numbers.contains(label))
    return fmt::format("label '{}' with {}{}", label, Describe(numbers.at(label)), where);
  return fmt::format("label '{}' with rate {:.4f}{}", label, summary.label_mean, where);
}

void PrintTable(const Dataset& dataset, const DatasetSummary& summary) {
  constexpr size_t kShown = 16;  // bytes of a value
  const bool has_labels = dataset.schema().has_labels();
  fmt::print("{}: {}, {}\nfingerprint {}\n", dataset.directory(), Counted(summary.rows, "row"),
             DescribeFirstLabel(dataset, summary), dataset.fingerprint());
  for (const FurtherLabelSummary& label : FurtherLabelsOf(dataset.manifest()))
    fmt::print("{}\n", Describe(label));
  if (const WeightSummary& weight = dataset.manifest().weight; !weight.name.empty())
    fmt::print("weight '{}': mean {:.4g}, from {:.4g} to {:.4g}\n", weight.name, weight.mean,
               weight.min, weight.max);
  for (const std::string& name : dataset.manifest().categorical)
    if (const WeightSummary& weights = dataset.manifest().features.at(name).weights;
        !weights.name.empty())
      fmt::print("weights '{}' of '{}': mean {:.4g}, from {:.4g} to {:.4g}\n", weights.name, name,
                 weights.mean, weights.min, weights.max);
  if (const double kept = dataset.schema().negatives_kept; kept != 1)
    fmt::print("negatives kept: {:.4g} of the population's\n", kept);
  if (const std::vector<std::string>& keys = dataset.manifest().keys; !keys.empty())
    fmt::print("keys, for predictions: {}\n", fmt::join(keys, ", "));
  if (dataset.bayes_optimal())
    fmt::print("generated: Bayes-optimal AUC {:.5f}, log loss {:.5f}\n",
               dataset.bayes_optimal()->best_auc, dataset.bayes_optimal()->best_log_loss);
  size_t width = 7;
  for (const FeatureSummary& feature : summary.features)
    width = std::max(width, feature.name.size());
  fmt::print("\n{:<{}}  {:<9} {:>10} {:>8} {:>9} {:>10}  {}\n", "feature", width, "kind", "values",
             "missing", "distinct", "of",
             !has_labels                                ? "most frequent: share"
             : dataset.schema().first_label_is_number() ? "most frequent: share, mean label"
                                                        : "most frequent: share, label rate");
  for (const FeatureSummary& feature : summary.features) {
    const double values = static_cast<double>(std::max<int64_t>(feature.values, 1));
    // An empty bag has no values, so the share of missing is relative to rows.
    const double rows = feature.kind == "multi-hot"
                            ? static_cast<double>(std::max<int64_t>(summary.rows, 1))
                            : values;
    const std::string missing =
        feature.missing < 0
            ? "-"
            : fmt::format("{:.2f}%", 100 * static_cast<double>(feature.missing) / rows);
    fmt::print("{:<{}}  {:<9} {:>10} {:>8} {:>8}{} {:>10} ", feature.name, width, feature.kind,
               feature.values, missing, feature.distinct, feature.distinct_capped ? "+" : " ",
               IsDense(feature) ? fmt::format("max {:.4g}", feature.max)
                                : fmt::format("{}", feature.num_embeddings));
    if (feature.kind == "vector")
      fmt::print("  {}, min {:.4g}, mean {:.4g}", Counted(feature.dimension, "number"), feature.min,
                 feature.mean);
    for (const TopValue& top : feature.top)
      fmt::print("  {}: {:.1f}%{}", Escape(ShortText(top.value, kShown)),
                 100 * static_cast<double>(top.count) / values,
                 !has_labels                  ? ""
                 : std::isnan(top.label_mean) ? ", -"
                                              : fmt::format(", {:.3f}", top.label_mean));
    fmt::print("\n");
  }
  fmt::print(
      "\nmissing: id 0 or an empty bag; for dense the share of zeros (of vectors, those of zeros "
      "only), because missing is stored as 0, or '-' with 'fill'\n");
}

}  // namespace

void AddDataInspectVerb(CLI::App& data) {
  struct Flags {
    std::string directory;
    size_t top = 3;
    bool json = false;
  };
  CLI::App* verb = data.add_subcommand("inspect", "Show statistics of each feature of a dataset");
  const auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Directory of the dataset")
      ->required()
      ->type_name("DIR");
  verb->add_option("--top", flags->top, "How many of the most frequent values to show")
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->footer("Example:\n  renzan data inspect data/train --top 5");
  verb->callback([flags] {
    const Dataset dataset(flags->directory);
    const DatasetSummary summary = InspectDataset(dataset, flags->top, StopOnSignals());
    if (flags->json)
      PrintJson(dataset, summary);
    else
      PrintTable(dataset, summary);
  });
}

void AddDataVerifyVerb(CLI::App& data) {
  CLI::App* verb = data.add_subcommand(
      "verify",
      "Compare every file of a dataset with its recorded SHA-256; exit 65 if one differs");
  const auto directory = std::make_shared<std::string>();
  verb->add_option("dataset", *directory, "Directory of the dataset")->required()->type_name("DIR");
  verb->footer("Example:\n  renzan data verify data/train");
  verb->callback([directory] {
    // Verify() reads everything anyway.
    const Dataset dataset(*directory, {.verify_blocks = false});
    dataset.Verify();
    fmt::print("{}: {}, all checksums match\n", *directory, Counted(dataset.num_rows(), "row"));
  });
}

}  // namespace renzan
