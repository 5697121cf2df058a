#include "renzan/data/text/csv_field.h"

#include <algorithm>

namespace renzan {

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::optional<std::vector<std::string>> CsvFieldsOf(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    std::string& field = fields.emplace_back();
    const bool quoted = line.starts_with('"');
    if (quoted) line.remove_prefix(1);
    size_t end = line.find(quoted ? '"' : ',');
    // Two quotes are one of the text.
    for (; quoted && end != std::string_view::npos && line.substr(end).starts_with("\"\"");
         end = line.find('"')) {
      field += line.substr(0, end + 1);
      line.remove_prefix(end + 2);
    }
    if (quoted && end == std::string_view::npos) return std::nullopt;
    field += line.substr(0, end);
    line.remove_prefix(std::min(line.size(), end + (quoted ? 1 : 0)));
    if (line.empty()) return fields;
    if (line.front() != ',') return std::nullopt;
    line.remove_prefix(1);
  }
}

}  // namespace renzan
