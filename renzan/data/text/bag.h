#pragma once

// Splits the field of a multi-hot column into its values.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

struct BagFormat {
  char separator = '|';
  bool trim = false;      // drop blanks around each value
  bool brackets = false;  // [1, 2] or ['a', "b, c"], as Python and JSON write lists
  // Of a vector, where positions count: empty values stay, also the last one after a separator,
  // unless spaces separate them, of which several count as one.
  bool keep_empty = false;
};

// Appends the values to `bag`, without empty ones (but see keep_empty) and those that `is_missing`.
// Returns what is wrong with the field, or "". The values are views into it.
std::string SplitBag(std::string_view field, const BagFormat& format,
                     const std::function<bool(std::string_view)>& is_missing,
                     std::vector<std::string_view>* bag);

}  // namespace renzan
