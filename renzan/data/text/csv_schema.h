#pragma once

// The schema file of generic CSV and TSV, which describes each column (docs/formats/dataset.md).
// Plain data.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "renzan/data/text/label_rule.h"

namespace renzan {

class ConfigFields;

struct CsvColumn {
  std::string name;  // in a schema file possibly a pattern of names, such as "C*"
  // label, weight, dense, categorical, multi_hot, bag_weights, date, key, skip
  std::string role;
  std::string transform = "none";  // dense: the name of a DenseTransform
  int64_t buckets = 32;            // dense: for transform buckets
  std::string fill;                // dense: "mean", or the number where it is missing; or ""
  std::vector<double> clip;        // dense: {lowest, highest} value before the transform, or empty
  int64_t dimension = 0;           // dense: a field is a vector of so many numbers; 0: one number
  // categorical: where to divide the numbers of its fields, whose value is the bucket; increasing.
  std::vector<double> bounds;
  // multi_hot and vectors: between the values of a field; "": "|", or "," in brackets. Those of
  // bag_weights are their bag's.
  std::string separator;
  bool brackets = false;             // multi_hot and vectors: fields are lists, as in [1, 2]
  std::vector<std::string> missing;  // texts that mean "missing", besides the empty one
  std::string date;                  // date: a DateFormat's text
  // date: day, weekday and hour, those of them that are wanted, as features (dense or categorical)
  // whose names are COLUMN.day and so on.
  std::vector<CsvColumn> parts;
  // categorical and multi_hot: the share of lookups that train the row for unseen values; NaN:
  // Vocabulary's default.
  double unseen = std::numeric_limits<double>::quiet_NaN();
  // categorical and multi_hot: whose table it looks up; features that name one share it and its
  // vocabulary. Empty: its own.
  std::string table;
  // multi_hot: greater than 0 for a sequence, which keeps its order and has at most so many values.
  // Of a longer one, `keep` says which remain: newest (the last), oldest (the first), or "": the
  // row is bad.
  int64_t max_length = 0;
  std::string keep;
  std::string bag;        // bag_weights: the multi_hot column whose values it weighs
  LabelRule label;        // label: what means 1 and what means 0
  bool optional = false;  // label, but not the only one: rows may lack it
  bool key = false;  // whether the text is kept for predictions, too, besides what the role does

  bool is_key() const { return key || role == "key"; }

  bool is_vector() const { return dimension > 0; }
  bool is_list() const { return role == "multi_hot" || is_bag_weights() || is_vector(); }
  bool is_bag_weights() const { return role == "bag_weights"; }
  // Of a dense column: whether numbers stay what they are.
  bool is_unchanged() const { return transform == "none" && clip.empty(); }
  bool is_pattern() const { return name.find('*') != std::string::npos; }
  std::string dense_transform() const;  // as a DenseTransform's text, without constants
  char bag_separator() const;

  void Describe(ConfigFields& fields);

 private:
  void DescribeTransform(ConfigFields& fields);
  void DescribeParts(ConfigFields& fields);
  void DescribeList(ConfigFields& fields);
  void DescribeTable(ConfigFields& fields);
};

struct CsvSchema {
  std::string delimiter = ",";  // one character, or several that are not letters or digits
  bool header = true;
  bool quotes = true;                // RFC 4180
  bool trim = false;                 // drop blanks around fields
  std::vector<std::string> missing;  // for columns that do not have their own
  double negatives_kept = 1;         // the share of all negatives that the input still has
  std::vector<CsvColumn> columns;    // in the schema file's order

  const CsvColumn* label() const;  // null if there is none
  // The column with the weights of this one's values, or null.
  const CsvColumn* WeightsOf(const CsvColumn& bag) const;

  // Replaces each pattern by the columns of `header` that it matches and that no other column
  // names, in the order of their names, C2 before C10. The first of several patterns counts.
  // Throws kConfig, naming `path`, for a pattern that matches none.
  void ExpandPatterns(const std::vector<std::string>& header, const std::string& path);

  // DatasetSchema::parsing of a column.
  std::string ParsingOf(const CsvColumn& column) const;

  // Throws kConfig with file, line, column and the nearest valid name.
  static CsvSchema ReadFile(const std::string& path);
  // The same of a text, which messages call `name`.
  static CsvSchema ReadText(const std::string& yaml, const std::string& name);
};

}  // namespace renzan
