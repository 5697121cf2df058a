#pragma once

// Which rows of an import are held out for its test set (docs/formats/dataset.md).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace renzan {

// What RowSource::SplitBy() returns for times of a table, whose text is 2024-01-31 12:00:00.
inline constexpr char kIsoTimes[] = "ISO 8601";

class RowSplit {
 public:
  // "time:COLUMN@VALUE": rows from VALUE on. "random:SHARE": each row with this probability.
  // "group:COLUMN@SHARE": each value of the column, with all of its rows. Throws kUsage.
  RowSplit(const std::string& text, uint64_t seed);

  const std::string& text() const { return text_; }
  const std::string& column() const { return column_; }  // "": none is needed
  // Of the column: the format of its dates, kIsoTimes, or "" if it holds none. Throws kUsage if
  // VALUE is no such date.
  void SetDateFormat(const std::string& format);

  // `row` is the number among the valid rows of the input, `field` that of the column. Returns what
  // is wrong with the field, or "".
  std::string HoldsOut(int64_t row, std::string_view field, bool* held_out) const;

 private:
  enum class Kind { kTime, kRandom, kGroup };

  bool Draws(uint64_t low, uint64_t high) const;

  std::string text_, column_, value_;
  Kind kind_ = Kind::kRandom;
  double share_ = 0;
  uint64_t key_ = 0;
  std::string date_format_;
  std::optional<double> number_;    // VALUE, where it is a number
  std::optional<int64_t> seconds_;  // VALUE, where the column has a format
};

}  // namespace renzan
