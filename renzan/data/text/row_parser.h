#pragma once

// Parsers of text formats, row by row. A row is either complete or bad, with a column and a reason.
// Not thread-safe.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/text/input.h"

namespace renzan {

// One row before its values are mapped to ids. Views are valid until the next row.
struct TextRow {
  int64_t line = 0;       // where it begins, from 1
  int64_t num_lines = 1;  // more than one only with quoted line breaks
  float label = 0;        // NaN: missing, as of further labels
  std::vector<float> further_labels;
  float weight = 1;              // finite and not negative; 1 where the schema has no weights
  std::string_view other_label;  // the label's text if it is 0 only because every other text is
  std::vector<float> dense;      // not set where the transform needs constants
  std::vector<double> unscaled;  // the numbers of those features, in order; NaN: missing
  std::vector<std::string_view> one_hot;                 // empty: missing
  std::vector<std::vector<std::string_view>> multi_hot;  // no empty values
  std::vector<std::vector<float>> bag_weights;  // of their values; empty where they have none
  std::vector<std::string_view> keys;           // of RowParser::keys(), unchanged
  std::string_view split;                       // of the column of SplitBy(); or ""
  std::vector<std::string> texts;               // made here, which others view
  // Of bags with weights, the texts of both columns, before they are matched (weighted_bags.h).
  struct UnmatchedBag {
    std::vector<std::string_view> values, weights;
    int finished = 0;        // of the two columns
    bool are_lists = false;  // either: an empty list is no missing value
  };
  std::vector<UnmatchedBag> unmatched_bags;
};

struct BadRow {
  int64_t line = 0;   // where the row begins, from 1
  size_t column = 0;  // from 1; 0 for the row as a whole
  std::string name;   // of the column
  std::string reason;
  std::string advice;            // what may be wrong with the whole file or its schema; or ""
  std::string alternative = "";  // to fixing the row or skipping it; or ""
};

class RowParser {
 public:
  enum class Result { kRow, kBadRow, kEnd };

  virtual ~RowParser() = default;
  // Reads what precedes the first row, which may define the columns. Must be called first, and
  // once.
  virtual void Begin(LineReader& lines) = 0;
  // num_embeddings are left 0: they come from the vocabularies.
  virtual const DatasetSchema& schema() const = 0;
  // For each categorical feature, the share that its column of the schema file sets
  // (Vocabulary::TrainUnseen); NaN if it sets none. Empty if no column does.
  virtual std::vector<double> unseen_shares() const { return {}; }
  // Columns whose texts are kept for predictions (DatasetManifest::keys).
  virtual std::vector<std::string> keys() const { return {}; }
  // Makes each row's `split` the text of this column. After Begin(). Returns what
  // RowSplit::SetDateFormat() takes; throws kUsage if there is no such column.
  virtual std::string SplitBy(const std::string& column) = 0;
  virtual Result Next(LineReader& lines, TextRow* row, BadRow* bad) = 0;
};

// Whether the input may lack the label, and the weight of samples. If the first file does, so must
// the other files, and the parser's schema has none.
enum class Labels { kRequired, kMayBeMissing };

// Criteo's TSV: label, I1..I13 (whole numbers, may be empty), C1..C26 (hexadecimal, may be empty).
// `log_dense`: log(max(x, 0) + 1), 0 for missing, as the DLRM reference does; otherwise x. A file
// that lacks required labels (39 columns) is an Error with a hint, not a bad row.
std::unique_ptr<RowParser> MakeCriteoParser(bool log_dense, Labels labels = Labels::kRequired);

// CSV or TSV described by a schema file (docs/formats/dataset.md). Throws kConfig for a schema that
// is wrong or does not fit a file's header.
std::unique_ptr<RowParser> MakeCsvParser(const std::string& schema_path,
                                         Labels labels = Labels::kRequired);

// What to do with data that has no labels.
inline constexpr char kUnlabelledAdvice[] =
    "data without labels, for `renzan predict`, needs --vocabulary-from TRAINING_DATA without "
    "--grow";

// What to do where labels may be missing, and the label's column is there but empty.
inline constexpr char kEmptyLabelAdvice[] =
    "data for predictions must not have the label's column: leave it out";

inline constexpr char kEmptyLabelsAdvice[] =
    "data for predictions must not have the labels' columns: leave them out";

// Throws kUsage: --split names a column that is none of `names`.
[[noreturn]] void FailNoSplitColumn(const std::string& column,
                                    const std::vector<std::string>& names);

// log(max(x, 0) + 1)
float LogTransform(double x);

}  // namespace renzan
