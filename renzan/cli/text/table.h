#pragma once

// Text tables: columns as wide as their content, separated by two blanks.

#include <cstddef>
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

  // The header and the rows as lines without trailing blanks. Control characters in cells become
  // '?': names given by users must not control the terminal.
  std::string Text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

inline constexpr Table::Align kRight = Table::Align::kRight;  // shorthand for lists of columns

}  // namespace renzan
