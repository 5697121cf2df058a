#pragma once

// Text tables for people: columns as wide as they need to be, two blanks apart.

#include <string>
#include <vector>

namespace renzan {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string name;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column. An empty cell is shown as "-".
  void Add(std::vector<std::string> row);

  // Lines, the header first, without blanks at their ends. Control characters in cells become '?':
  // what others have named must not move the cursor.
  std::string Text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

inline constexpr Table::Align kRight = Table::Align::kRight;  // for short lists of columns

}  // namespace renzan
