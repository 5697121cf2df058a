#include "renzan/cli/text/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Width on a terminal: UTF-8 continuation bytes take no column.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

}  // namespace

void Table::Add(std::vector<std::string> row) {
  CHECK(row.size() == columns_.size());
  for (std::string& cell : row) {
    if (cell.empty()) cell = "-";
    for (char& c : cell)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  rows_.push_back(std::move(row));
}

std::string Table::Text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines[0].push_back(column.name);
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<size_t> widths(columns_.size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  std::string text;
  for (const auto& cells : lines) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string fill(widths[i] - Width(cells[i]), ' ');
      line += columns_[i].align == Align::kRight ? fill + cells[i] : cells[i] + fill;
      line += "  ";
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace renzan
