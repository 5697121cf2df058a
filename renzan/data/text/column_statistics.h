#pragma once

// What the values of one column of a text file look like. Memory is bounded.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "renzan/data/dense_spread.h"
#include "renzan/data/text/date.h"

namespace renzan {

class ColumnStatistics {
 public:
  // Of values that are counted, whichever is reached first: vectors have long texts.
  static constexpr size_t kMaxDistinct = 100'000;
  static constexpr size_t kMaxDistinctBytes = size_t{32} << 20;

  ColumnStatistics();
  void Add(std::string_view field);

  int64_t rows() const { return rows_; }
  int64_t missing() const { return missing_; }  // empty, or a text such as "?" or "NA"
  // The texts that mean missing.
  const std::map<std::string, int64_t>& missing_texts() const { return missing_texts_; }
  int64_t present() const { return rows_ - missing_; }
  size_t distinct() const { return counts_.size(); }
  bool many_distinct() const {
    return counts_.size() >= kMaxDistinct || bytes_ >= kMaxDistinctBytes;
  }
  // How many values were present when the count of distinct values reached its limit, or all of
  // them.
  int64_t present_while_counted() const { return many_distinct() ? present_when_full_ : present(); }
  bool has_blanks() const { return has_blanks_; }  // around values

  int64_t numbers() const { return numbers_; }  // of those present
  bool is_number() const { return present() > 0 && numbers_ == present(); }
  bool is_whole() const { return is_number() && whole_; }
  double min() const { return min_; }
  double max() const { return max_; }
  const DenseSpread& spread() const { return spread_; }
  // The format in which all values are dates, or "".
  std::string date_format() const;
  // If date_format() has the month before the day: the format with the day first, if all values are
  // dates of that, too; otherwise "".
  std::string date_format_with_day_first() const;
  // Which of "day", "weekday" and "hour" differ between these dates.
  std::vector<std::string> varying_date_parts() const;
  // The character that separates the values of a bag, or 0.
  char bag_separator() const;
  // The same for one that is usual in texts that are no bags, too: a comma or a blank.
  char possible_bag_separator() const;
  bool in_brackets() const { return present() > 0 && brackets_ == present(); }

  // Most frequent first; ties by text.
  std::vector<std::pair<std::string, int64_t>> MostFrequent(size_t limit) const;

 private:
  struct Dates {
    DateFormat format;
    DateParts first = {};  // of the first value
    bool day_varies = false, weekday_varies = false, hour_varies = false;
  };

  void AddToDates(std::string_view value);
  bool IsBagSeparator(char separator) const;
  char FirstBagSeparator(std::string_view separators) const;

  int64_t rows_ = 0, missing_ = 0, numbers_ = 0, brackets_ = 0, present_when_full_ = 0;
  std::map<std::string, int64_t> missing_texts_;
  std::unordered_map<std::string, int64_t> counts_;
  size_t bytes_ = 0;  // of their texts
  bool has_blanks_ = false, whole_ = true;
  double min_ = 0, max_ = 0;
  DenseSpread spread_{1};
  std::vector<Dates> dates_;  // that fit so far
};

// Whether a text is a number as dense columns accept it.
bool IsNumber(std::string_view text, double* number);

}  // namespace renzan
