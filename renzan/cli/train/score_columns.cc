#include "renzan/cli/train/score_columns.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/text/csv_field.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

using Kind = ScoreColumn::Kind;

ScoreColumn ColumnNamed(const Dataset& dataset, const std::string& name) {
  const DatasetSchema& schema = dataset.schema();
  std::vector<std::string> names;
  std::optional<ScoreColumn> found;
  const auto look_at = [&](Kind kind, size_t index, const std::string& other) {
    if (std::find(names.begin(), names.end(), other) == names.end()) names.push_back(other);
    if (other == name && !found)
      found = ScoreColumn{.kind = kind,
                          .index = index,
                          .name = name,
                          .key = nullptr,
                          .names = nullptr,
                          .input_rows = nullptr};
  };
  // The text of a feature that is a key, too, says more than the feature.
  for (const std::string& key : dataset.manifest().keys) look_at(Kind::kKey, 0, key);
  const std::vector<std::string> labels = schema.label_names();
  for (size_t i = 0; i < labels.size(); ++i) look_at(Kind::kLabel, i, labels[i]);
  if (!schema.weight.empty()) look_at(Kind::kWeight, 0, schema.weight);
  for (size_t d = 0; d < schema.dense.size(); ++d) look_at(Kind::kDense, d, schema.dense[d]);
  for (size_t t = 0; t < schema.categorical.size(); ++t)
    look_at(Kind::kCategorical, t, schema.categorical[t].name);
  look_at(Kind::kInputRow, 0, kInputRowName);
  if (found) return std::move(*found);
  const std::string nearest = NearestName(name, names);
  std::string advice;
  for (std::string& other : names) {
    const std::string field = CsvField(other);
    if (field != other) advice = fmt::format("; quote names with a comma: --with '{}'", field);
    other = field;
  }
  Fail(ErrorCode::kUsage, "--with {}: {} has no such column{}; it has {}{}", name,
       dataset.directory(), nearest.empty() ? "" : " (did you mean '" + nearest + "'?)",
       fmt::join(names, ", "), advice);
}

// A vector's name means all of its numbers, unless the text of its column is a key.
std::vector<std::string> WithoutVectors(const Dataset& dataset,
                                        const std::vector<std::string>& names) {
  const DatasetSchema& schema = dataset.schema();
  const std::vector<std::string>& keys = dataset.manifest().keys;
  std::vector<std::string> columns;
  for (const std::string& name : names) {
    const auto vector = std::find_if(schema.vectors.begin(), schema.vectors.end(),
                                     [&](const DenseVector& other) { return other.name == name; });
    const bool is_key = std::find(keys.begin(), keys.end(), name) != keys.end();
    if (vector == schema.vectors.end() || is_key) {
      columns.push_back(name);
      continue;
    }
    for (int64_t i = 0; i < vector->dimension; ++i) columns.push_back(vector->NameOf(i));
  }
  return columns;
}

// An id or the ids of a bag.
std::span<const int64_t> IdsOf(const ScoreColumn& column, const Batch& batch, size_t row) {
  CHECK(column.kind == Kind::kCategorical);
  const FeatureIds& ids = batch.categorical[column.index];
  const std::span<const int64_t> values(ids.values);
  if (ids.one_hot()) return values.subspan(row, 1);
  const auto begin = static_cast<size_t>(ids.offsets[row]);
  return values.subspan(begin, static_cast<size_t>(ids.offsets[row + 1]) - begin);
}

}  // namespace

std::vector<std::string> ScoreColumnNames(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    const std::optional<std::vector<std::string>> fields = CsvFieldsOf(list);
    if (!fields)
      Fail(ErrorCode::kUsage,
           "--with {}: its quotes are wrong: put them around a whole name, as in CSV: "
           "--with '\"a,b\",c'",
           list);
    if (std::find(fields->begin(), fields->end(), "") != fields->end())
      Fail(ErrorCode::kUsage,
           "--with {}: a name is empty: write the names with one comma between them", list);
    names.insert(names.end(), fields->begin(), fields->end());
  }
  return names;
}

std::vector<std::string> ScoreNames(const std::vector<ModelOutput>& outputs) {
  if (outputs.size() == 1) return {"score"};
  std::vector<std::string> names;
  for (const ModelOutput& output : outputs) names.push_back("score_" + output.name);
  return names;
}

void CheckScoreColumns(const Dataset& dataset, const std::vector<std::string>& names,
                       const std::vector<std::string>& scores) {
  std::set<std::string> seen(scores.begin(), scores.end());
  for (const std::string& name : WithoutVectors(dataset, names)) {
    ColumnNamed(dataset, name);
    if (!seen.insert(name).second)
      Fail(ErrorCode::kUsage, "--with {}: {}", name,
           std::find(scores.begin(), scores.end(), name) != scores.end()
               ? "the model's scores, the last column, have this name: leave it out, "
                 "and join the data's column by a key or by --with input_row"
               : "the column is named twice");
  }
}

std::vector<ScoreColumn> MakeScoreColumns(const Dataset& dataset,
                                          const std::vector<std::string>& names, RowRange rows) {
  std::vector<ScoreColumn> columns;
  for (const std::string& name : WithoutVectors(dataset, names)) {
    ScoreColumn& column = columns.emplace_back(ColumnNamed(dataset, name));
    if (column.kind == Kind::kKey)
      column.key = std::make_unique<KeyColumn>(dataset, name, rows.begin, rows.end);
    if (column.kind == Kind::kInputRow) column.input_rows = std::make_unique<InputRows>(dataset);
    if (column.kind != Kind::kCategorical) continue;
    column.names = std::make_unique<ValueNames>(dataset, column.index);
    column.is_bag = dataset.schema().categorical[column.index].multi_hot;
    if (!column.names->known()) column.name += " (id)";
  }
  return columns;
}

float FloatOf(const ScoreColumn& column, const DatasetSchema& schema, const ScoredRows& rows,
              size_t row) {
  if (column.kind == Kind::kLabel) return rows.batch.labels(column.index)[row];
  if (column.kind == Kind::kWeight) return rows.batch.weight[row];
  CHECK(column.kind == Kind::kDense);
  return rows.batch.dense[row * schema.dense.size() + column.index];
}

int64_t IntegerOf(const ScoreColumn& column, const ScoredRows& rows, size_t row) {
  if (column.kind == Kind::kInputRow)
    return column.input_rows->Of(rows.first + static_cast<int64_t>(row));
  return IdsOf(column, rows.batch, row)[0];
}

std::string TextOf(const ScoreColumn& column, const DatasetSchema& schema, const ScoredRows& rows,
                   size_t row) {
  if (column.is_float()) {
    const float value = FloatOf(column, schema, rows, row);
    return std::isnan(value) ? "" : fmt::format("{}", value);  // a label that is missing
  }
  if (column.key) return std::string(column.key->Text(rows.first + static_cast<int64_t>(row)));
  if (column.kind == Kind::kInputRow) return fmt::format("{}", IntegerOf(column, rows, row));
  std::string text;
  bool first = true;
  for (const int64_t id : IdsOf(column, rows.batch, row)) {
    if (!std::exchange(first, false)) text += '|';
    // A missing value is an empty field, as in the input.
    const bool is_missing =
        column.names->known() && !column.names->are_ids() && id == Vocabulary::kMissing;
    if (!is_missing) text += column.names->Shown(id);
  }
  return text;
}

}  // namespace renzan
