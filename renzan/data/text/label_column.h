#pragma once

// Which column of a text file is the label, and how its values become 0 and 1.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/data/text/table_statistics.h"

namespace renzan {

using Counts = std::vector<std::pair<std::string, int64_t>>;

// The values of a label's column, the most frequent first, without a few that do not fit the
// others: a text among numbers, a third text beside two, another number beside 0 and 1 or -1 and 1.
// Rows with those are bad rows.
struct Labels {
  Counts counts = {};
  bool are_numbers = false;
  Counts unlike = {};

  std::map<double, int64_t> numbers() const {
    std::map<double, int64_t> rows;
    double number = 0;
    for (const auto& [text, count] : counts)
      if (IsNumber(text, &number)) rows[number] += count;
    return rows;
  }
  bool are(double low, double high) const {
    const std::map<double, int64_t> rows = numbers();
    return are_numbers && rows.size() == 2 && rows.contains(low) && rows.contains(high);
  }
};

Labels LabelsOf(const ColumnStatistics& values);

// The index of the column that is the label, if any is.
size_t FindLabel(const Table& table);
// Whether a person would take the column for a label, rather than for the best of the features.
bool LooksLikeLabel(const Table& table, size_t index);

// Its entry in a schema.
std::string DescribeLabel(const Labels& labels);
// That it is a guess which text means 1, or what a limit that is a guess does; "" if nothing is.
std::string HintOnLabel(const Labels& labels);
// Which rows are bad rows for their label: lines of comments, or "".
std::string CommentOnBadLabels(const ColumnStatistics& values, const Labels& labels);

}  // namespace renzan
