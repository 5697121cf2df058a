#pragma once

// What a column of a text file holds, as its name and its values tell.

#include <cstdint>
#include <string>
#include <string_view>

#include "renzan/data/text/table_statistics.h"

namespace renzan {

// Fewer rows do not show whether values repeat.
inline constexpr int64_t kEnoughRows = 50;
inline constexpr double kNearlyAll = 0.99;
// Whole numbers with at most this many distinct values are codes rather than quantities.
inline constexpr size_t kFewNumbers = 10;

// Of ASCII letters.
std::string Lower(std::string_view text);

bool HasOwnValueInEveryRow(const ColumnStatistics& values);
// Whether the texts identify rows, so that predictions can be joined by them: all different, none
// missing, and no prose.
bool IsKey(const ColumnStatistics& values);
// userId, user_id, id, zip, but not "paid".
bool IsIdName(const std::string& name);
// By its name; a usual name of things, such as user or sku, says so of whole numbers only.
bool HoldsIds(const Column& column);
// Whether these are many whole numbers that fill at least half of their range, as ids do.
bool FillsItsRange(const ColumnStatistics& values);
// Whether these are seconds since 1970, by the name, too.
bool IsUnixTime(const Column& column);
bool IsDate(const Column& column);
bool IsConstant(const ColumnStatistics& values);

// The schema of a column of vectors: lists of as many numbers each, not all of which are whole. Or
// "".
std::string DescribeVector(const ColumnStatistics& values, const std::string& delimiter);

}  // namespace renzan
