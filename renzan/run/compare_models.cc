#include "renzan/run/compare_models.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/model/column_differences.h"
#include "renzan/planning/plan_report.h"
#include "renzan/run/splits.h"

namespace renzan {
namespace {

// Of the data that a model was trained on, as far as its configuration records it.
DatasetSchema EarlierSchema(const TrainConfig& there) {
  const FeaturesConfig& features = there.features;
  DatasetSchema schema = SchemaOf(there);
  schema.label = features.label;
  schema.label_rule = features.label_rule;
  schema.further_labels.clear();
  for (const auto& [name, rule] : features.further_label_rules)
    schema.further_labels.push_back({.name = name, .rule = rule});
  for (size_t f = 0; f < features.vocabularies.size(); ++f)
    schema.categorical[f].vocabulary = features.vocabularies[f];
  return schema;
}

bool SameNames(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::set(a.begin(), a.end()) == std::set(b.begin(), b.end());
}

// What `a` has and `b` lacks, except features whose tables it lacks, too.
void AddMissing(const FeaturesConfig& a, const FeaturesConfig& b, const char* where,
                std::vector<std::string>* texts) {
  const std::set<std::string> dense(b.dense.begin(), b.dense.end());
  for (const std::string& name : a.dense)
    if (!dense.contains(name))
      texts->push_back(fmt::format("the dense feature '{}' is missing {}", Escape(name), where));
  const std::set<std::string> categorical(b.categorical.begin(), b.categorical.end());
  const std::set<std::string> tables(b.table_names().begin(), b.table_names().end());
  for (size_t i = 0; i < a.categorical.size(); ++i)
    if (!categorical.contains(a.categorical[i]) && tables.contains(a.table_names()[i]))
      texts->push_back(fmt::format("the categorical feature '{}' is missing {}",
                                   Escape(a.categorical[i]), where));
}

}  // namespace

bool HaveSameFeatures(const FeaturesConfig& there, const DatasetSchema& schema) {
  const FeaturesConfig here = FeaturesOf(schema);
  return SameNames(there.dense, here.dense) && SameNames(there.categorical, here.categorical);
}

int64_t FirstCommonFeature(const FeaturesConfig& there, const RunSpec& spec, size_t table,
                           const DatasetSchema& schema) {
  const std::set<std::string> known(there.categorical.begin(), there.categorical.end());
  size_t begin = 0;
  for (size_t t = 0; t < table; ++t) begin += spec.tables[t].features.size();
  for (size_t i = begin; i < begin + spec.tables[table].features.size(); ++i) {
    const size_t f = spec.features[i];
    // Those behind the dataset's are negatives.
    if (f < schema.categorical.size() && known.contains(schema.categorical[f].name))
      return static_cast<int64_t>(f);
  }
  return -1;
}

ModelComparison CompareModels(const CheckpointReader& reader, const TrainConfig& there,
                              const RunSpec& spec, const DatasetSchema& schema) {
  const ModelOptions model_there = ModelOptionsOf(there, EarlierSchema(there));
  const std::unique_ptr<Model> model = MakeModel(spec.model);
  const ColumnDifferences columns = CompareColumns({model_there, there.features.dense},
                                                   {spec.model, schema.dense}, model->layout());
  OtherParts others{.parameters = columns.parameters, .tables = {}};
  for (size_t t = 0; t < spec.tables.size(); ++t) {
    std::string& why = others.tables[spec.tables[t].name];
    if (columns.rows)
      why = "has first-order weights in its rows on one side only";
    else if (FirstCommonFeature(there.features, spec, t, schema) < 0)
      why = "has other features there";
  }
  ModelComparison comparison{.parts = MatchParts(reader, model->layout(), spec.tables, others),
                             .features = {},
                             .outputs_differ = columns.outputs};
  const FeaturesConfig here = FeaturesOf(schema);
  AddMissing(here, there.features, "there", &comparison.features);
  AddMissing(there.features, here, "here", &comparison.features);
  return comparison;
}

void CheckDifferences(const ModelComparison& comparison, const std::string& type_there,
                      const std::string& type_here, bool partly) {
  const PartMatch& parts = comparison.parts;
  const std::string types =
      type_there == type_here
          ? ""
          : fmt::format("model.type is {} there and {} here, and ", type_there, type_here);
  if (parts.tables.empty() && parts.parameters.empty())
    Fail(ErrorCode::kConfig,
         "{}no table or dense parameter is in both models with the same name and size, so there "
         "is nothing to take: leave initialize_from out",
         types);
  if (partly || comparison.same()) return;
  std::vector<std::string> all = comparison.features;
  all.insert(all.end(), parts.begin_anew.begin(), parts.begin_anew.end());
  for (const std::string& part : parts.left) all.push_back(part + " is missing here");
  if (all.empty()) all.emplace_back("other blocks compute the output from the same parameters");
  constexpr size_t kMostNamed = 10;
  const size_t more = all.size() - std::min(all.size(), kMostNamed);
  const std::string count = Counted(std::ssize(all), "difference");
  all.resize(all.size() - more);
  Fail(ErrorCode::kConfig,
       "{}the models have {}: {}{}; to take what both have, and let the rest begin as "
       "initialised, add --initialize-partly (training.initialize_partly: true)",
       types, count, fmt::join(all, ", "), more > 0 ? fmt::format(", and {} more", more) : "");
}

}  // namespace renzan
