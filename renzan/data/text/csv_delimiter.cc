#include "renzan/data/text/csv_delimiter.h"

#include <fmt/format.h>

#include "renzan/base/config/config.h"

namespace renzan {
namespace {

// Delimiters inside quotes do not count. Doubled quotes stay as they are.
std::vector<std::string_view> Split(std::string_view line, std::string_view delimiter) {
  std::vector<std::string_view> fields;
  size_t begin = 0;
  bool in_quotes = false;
  const auto end_field = [&](size_t end) {
    std::string_view field = line.substr(begin, end - begin);
    if (field.size() > 1 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    fields.push_back(field);
    begin = end + delimiter.size();
  };
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') in_quotes = !in_quotes;
    if (in_quotes || !line.substr(at).starts_with(delimiter)) continue;
    end_field(at);
    at = begin - 1;
  }
  end_field(line.size());
  return fields;
}

}  // namespace

std::string DelimiterThatFits(
    std::string_view line,
    const std::function<bool(const std::vector<std::string_view>& fields)>& fits) {
  for (const char* delimiter : kUsualDelimiters)
    if (fits(Split(line, delimiter))) return delimiter;
  return "";
}

std::string DelimiterInSchema(const std::string& delimiter) {
  return "delimiter: " + (delimiter == "\t" ? "tab" : ConfigValue{{delimiter}, ""}.key());
}

}  // namespace renzan
