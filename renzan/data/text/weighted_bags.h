#pragma once

// Matches the values of bags with their weights, which are another column of the input (role
// bag_weights), by position. Values that are dropped, because they are empty or missing, drop their
// weights. What has been read of a row is in the row.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/text/csv_schema.h"
#include "renzan/data/text/row_parser.h"

namespace renzan {

class WeightedBags {
 public:
  WeightedBags() = default;
  // `slots`: by column, of multi_hot ones the index in TextRow::multi_hot.
  WeightedBags(const std::vector<CsvColumn>& columns, const std::vector<size_t>& slots);

  // Whether a column has weights, or is one of weights.
  bool Has(size_t column) const {
    return column < of_column_.size() && of_column_[column] != kNone;
  }
  // Where its texts in the row belong, all of them; null unless Has().
  std::vector<std::string_view>* TextsOf(size_t column, TextRow* row) const;

  void BeginRow(TextRow* row) const;
  // The column's field is a list, not texts between separators.
  void SetList(size_t column, TextRow* row) const;
  // Takes note that TextsOf(column) is complete. Once the other column's texts are, too, sets the
  // row's bag and weights. `drops(column, value)`: whether a value of the bag is empty or missing.
  // Returns what is wrong with them, or "".
  std::string Finish(size_t column, TextRow* row,
                     const std::function<bool(size_t, std::string_view)>& drops) const;

 private:
  struct Bag {
    size_t column = 0, slot = 0;
    std::string name, weights_name;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  std::vector<size_t> of_column_;  // index in bags_, or kNone
  std::vector<Bag> bags_;
};

}  // namespace renzan
