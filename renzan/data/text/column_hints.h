#pragma once

// What a column of a text file may hold that its values alone do not decide: hints for the comments
// of a proposed schema, or "".

#include <string>

#include "renzan/data/text/column_statistics.h"

namespace renzan {

inline constexpr size_t kShownBytes = 20;  // of a value in a comment

// In quotes, if YAML needs them.
std::string QuotedForYaml(const std::string& text);

// What keeps texts from being numbers: one way to write them, or one text for missing values.
std::string HintOnText(const ColumnStatistics& values);
// Of numbers: that the only negative one may mean missing.
std::string HintOnMissing(const ColumnStatistics& values);
// Of numbers: that they may be times.
std::string HintOnTime(const ColumnStatistics& values);
// Of texts: that they are dates but for a few.
std::string HintOnBadDates(const ColumnStatistics& values);
// Of texts: that they may be several values each.
std::string HintOnBags(const ColumnStatistics& values, const std::string& delimiter);

}  // namespace renzan
