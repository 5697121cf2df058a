#pragma once

// The schema file of generic CSV and TSV, which describes each column (docs/formats/dataset.md).
// Plain data.

#include <limits>
#include <string>
#include <vector>

#include "renzan/data/text/label_rule.h"

namespace renzan {

class ConfigFields;

struct CsvColumn {
  std::string name;
  std::string role;                // label, dense, categorical, multi_hot, skip
  std::string transform = "none";  // dense: "none", or "log": log(max(x, 0) + 1)
  std::string separator;  // multi_hot: between the values of a field; "": "|", or "," in brackets
  bool brackets = false;  // multi_hot: fields are lists, as in [1, 2]
  // categorical and multi_hot: the share of lookups that train the row for unseen values; NaN:
  // Vocabulary's default.
  double unseen = std::numeric_limits<double>::quiet_NaN();
  LabelRule label;  // label: what means 1 and what means 0

  char bag_separator() const;

  void Describe(ConfigFields& fields);
};

struct CsvSchema {
  std::string delimiter = ",";
  bool header = true;
  bool quotes = true;                // RFC 4180
  bool trim = false;                 // drop blanks around fields
  std::vector<std::string> missing;  // texts that mean "missing", besides the empty one
  std::vector<CsvColumn> columns;    // in the schema file's order

  // DatasetSchema::parsing of a column.
  std::string ParsingOf(const CsvColumn& column) const;

  // Throws kConfig with file, line, column and the nearest valid name.
  static CsvSchema ReadFile(const std::string& path);
};

}  // namespace renzan
