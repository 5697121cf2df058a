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

ScoreColumn MakeColumn(Kind kind, size_t index, const std::string& name) {
  return {.kind = kind,
          .index = index,
          .name = name,
          .key = nullptr,
          .names = nullptr,
          .input_rows = nullptr};
}

[[noreturn]] void FailNoColumn(const Dataset& dataset, const std::string& name) {
  const DatasetSchema& schema = dataset.schema();
  std::vector<std::string> names;  // without the numbers of vectors, of which there may be many
  std::set<std::string> seen;
  const auto add = [&](const std::string& other) {
    if (seen.insert(other).second) names.push_back(other);
  };
  for (const std::string& key : dataset.manifest().keys) add(key);
  for (const std::string& label : schema.label_names()) add(label);
  if (!schema.weight.empty()) add(schema.weight);
  auto vector = schema.vectors.begin();
  for (size_t d = 0; d < schema.dense.size();) {
    const bool is_vector = vector != schema.vectors.end() && vector->first == d;
    add(is_vector ? vector->name : schema.dense[d]);
    d += is_vector ? static_cast<size_t>((vector++)->dimension) : 1;
  }
  for (const CategoricalFeature& feature : schema.categorical) add(feature.name);
  add(kInputRowName);
  std::vector<std::string> candidates = names;
  candidates.insert(candidates.end(), schema.dense.begin(), schema.dense.end());
  const std::string nearest = NearestName(name, candidates);
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
std::vector<ScoreColumn> ColumnsNamed(const Dataset& dataset, const std::string& name) {
  const DatasetSchema& schema = dataset.schema();
  const auto find = [&](const std::vector<std::string>& names) -> std::optional<size_t> {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<size_t>(found - names.begin());
  };
  std::vector<ScoreColumn> columns;
  const auto one = [&](Kind kind, size_t index) {
    columns.push_back(MakeColumn(kind, index, name));
    return std::move(columns);
  };
  // The text of a feature that is a key, too, says more than the feature.
  if (find(dataset.manifest().keys)) return one(Kind::kKey, 0);
  if (const auto label = find(schema.label_names())) return one(Kind::kLabel, *label);
  if (name == schema.weight) return one(Kind::kWeight, 0);
  if (const auto dense = find(schema.dense)) return one(Kind::kDense, *dense);
  for (size_t t = 0; t < schema.categorical.size(); ++t)
    if (schema.categorical[t].name == name) return one(Kind::kCategorical, t);
  for (const DenseVector& vector : schema.vectors) {
    if (vector.name != name) continue;
    for (int64_t i = 0; i < vector.dimension; ++i)
      columns.push_back(
          MakeColumn(Kind::kDense, vector.first + static_cast<size_t>(i), vector.NameOf(i)));
    return columns;
  }
  if (name == kInputRowName) return one(Kind::kInputRow, 0);
  FailNoColumn(dataset, name);
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
  for (const std::string& name : names)
    for (const ScoreColumn& column : ColumnsNamed(dataset, name))
      if (!seen.insert(column.name).second)
        Fail(ErrorCode::kUsage, "--with {}: {}", column.name,
             std::find(scores.begin(), scores.end(), column.name) != scores.end()
                 ? "the model's scores, the last column, have this name: leave it out, "
                   "and join the data's column by a key or by --with input_row"
                 : "the column is named twice");
}

std::vector<ScoreColumn> MakeScoreColumns(const Dataset& dataset,
                                          const std::vector<std::string>& names, RowRange rows) {
  std::vector<ScoreColumn> columns;
  for (const std::string& name : names)
    for (ScoreColumn& column : ColumnsNamed(dataset, name)) columns.push_back(std::move(column));
  for (ScoreColumn& column : columns) {
    if (column.kind == Kind::kKey)
      column.key = std::make_unique<KeyColumn>(dataset, column.name, rows.begin, rows.end);
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
