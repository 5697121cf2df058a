#pragma once

// Columns of the data that `predict --with` writes before the scores.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/input_rows.h"
#include "renzan/data/key_column.h"
#include "renzan/data/value_names.h"
#include "renzan/infer/evaluate.h"

namespace renzan {

// The names of the last columns of a file with columns: "score", or "score_click" and so on of a
// model with several outputs.
std::vector<std::string> ScoreNames(const std::vector<ModelOutput>& outputs);
// The name of a row's number in the input (input_rows.h), unless a column has it.
inline constexpr char kInputRowName[] = "input_row";

struct ScoreColumn {
  enum class Kind { kKey, kLabel, kWeight, kDense, kCategorical, kInputRow } kind;
  size_t index = 0;                       // of the feature or label
  std::string name;                       // in the header
  std::unique_ptr<KeyColumn> key;         // of a key
  std::unique_ptr<ValueNames> names;      // of a categorical feature
  bool is_bag = false;                    // of a multi-hot one
  std::unique_ptr<InputRows> input_rows;  // of the rows' numbers

  bool is_float() const {
    return kind == Kind::kLabel || kind == Kind::kWeight || kind == Kind::kDense;
  }
  // Whether its values are single ids or numbers of rows.
  bool is_integer() const {
    return kind == Kind::kInputRow || (names && !is_bag && (names->are_ids() || !names->known()));
  }
  bool is_utf8() const { return key ? key->are_utf8() : names->are_utf8(); }  // of texts
};

// Consecutive rows of the dataset.
struct ScoredRows {
  int64_t first = 0;
  Batch batch;  // empty if there are no columns
};

// The names in lists as --with takes them: lines of CSV. Throws kUsage for wrong quotes.
std::vector<std::string> ScoreColumnNames(const std::vector<std::string>& lists);

// Throws kUsage unless the dataset has columns of these names (keys, its label and weight, dense
// and categorical features, kInputRowName), each of which is named once.
void CheckScoreColumns(const Dataset& dataset, const std::vector<std::string>& names,
                       const std::vector<std::string>& scores);

// The same columns of these rows; reads keys and vocabularies. Values of features whose values were
// hashed are ids, which their names say.
std::vector<ScoreColumn> MakeScoreColumns(const Dataset& dataset,
                                          const std::vector<std::string>& names, RowRange rows);

// A value of an is_float() column in rows.batch's `row`.
float FloatOf(const ScoreColumn& column, const DatasetSchema& schema, const ScoredRows& rows,
              size_t row);
// The same of an is_integer() one.
int64_t IntegerOf(const ScoreColumn& column, const ScoredRows& rows, size_t row);
// Any value as text: a key's unchanged, other values by their names, missing ones as "", those of a
// bag separated by '|'.
std::string TextOf(const ScoreColumn& column, const DatasetSchema& schema, const ScoredRows& rows,
                   size_t row);

}  // namespace renzan
