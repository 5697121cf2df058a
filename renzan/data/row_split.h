#pragma once

// Which rows of an import are held out for its test set (docs/formats/dataset.md).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace renzan {

// What RowSource::SplitBy() returns for columns of a table: dates and timestamps, whose text is
// 2024-01-31 or 2024-01-31 12:00:00, with parts of the second, and numbers.
inline constexpr char kIsoDates[] = "ISO dates", kIsoTimes[] = "ISO times", kNumbers[] = "numbers";

class RowSplit {
 public:
  // "time:COLUMN@VALUE": rows from VALUE on. "random:SHARE": each row with this probability.
  // "group:COLUMN@SHARE": each value of the column, with all of its rows. Throws kUsage.
  RowSplit(const std::string& text, uint64_t seed);

  const std::string& text() const { return text_; }
  const std::string& column() const { return column_; }  // "": none is needed
  // Of the column: the format of its dates, one of the words above, or "" for other texts. Throws
  // kUsage if VALUE cannot be compared with such values.
  void SetFormat(const std::string& format);

  // `row` is the number among the valid rows of the input, `field` that of the column. Returns what
  // is wrong with the field, or "".
  std::string HoldsOut(int64_t row, std::string_view field, bool* held_out) const;

 private:
  enum class Kind { kTime, kRandom, kGroup };

  bool Draws(uint64_t low, uint64_t high) const;
  [[noreturn]] void FailValue(const std::string& problem) const;
  void SetNumber();
  bool is_iso() const { return format_ == kIsoDates || format_ == kIsoTimes; }
  std::string CompareSeconds(std::string_view field, bool* held_out) const;
  std::string CompareNumbers(std::string_view field, bool* held_out) const;

  std::string text_, column_, value_;
  Kind kind_ = Kind::kRandom;
  double share_ = 0;
  uint64_t key_ = 0;
  std::string format_;
  std::optional<double> number_;    // VALUE, where numbers are compared
  std::optional<int64_t> whole_;    // the same, where it is a whole number
  std::optional<int64_t> seconds_;  // VALUE, where the column has a format of dates
};

}  // namespace renzan
