#include "renzan/data/text/bag.h"

#include <algorithm>

#include "renzan/data/text/csv_record.h"

namespace renzan {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";  // NumPy breaks long lists into lines

// But not a separator that is blank.
void SkipBlanks(std::string_view* text, char separator) {
  while (!text->empty() && text->front() != separator &&
         kBlanks.find(text->front()) != std::string_view::npos)
    text->remove_prefix(1);
}

// Takes one value of a list from the front of `rest`, and leaves the separator after it.
std::string TakeListValue(std::string_view* rest, char separator, std::string_view* value) {
  const char quote = rest->front();
  if (quote != '\'' && quote != '"') {
    const size_t end = std::min(rest->find(separator), rest->size());
    *value = rest->substr(0, end);
    value->remove_suffix(value->size() - (value->find_last_not_of(kBlanks) + 1));
    rest->remove_prefix(end);
    return value->find_first_of("[]'\"") == std::string_view::npos
               ? ""
               : "is not a list of plain values";
  }
  const size_t end = rest->find(quote, 1);
  if (end == std::string_view::npos) return "has a quote that is never closed";
  *value = rest->substr(1, end - 1);
  if (value->find('\\') != std::string_view::npos)
    return "has a backslash in quotes, whose meaning differs between programs: write the character "
           "itself";
  rest->remove_prefix(end + 1);
  SkipBlanks(rest, separator);
  return rest->empty() || rest->front() == separator ? "" : "has text after a closing quote";
}

}  // namespace

std::string SplitBag(std::string_view field, const BagFormat& format,
                     const std::function<bool(std::string_view)>& is_missing,
                     std::vector<std::string_view>* bag) {
  const bool keep_empty = format.keep_empty && format.separator != ' ';
  const auto add = [&](std::string_view value) {
    if (keep_empty || (!value.empty() && !is_missing(value))) bag->push_back(value);
  };
  if (!format.brackets) {
    const bool ends_empty = field.ends_with(format.separator);
    while (!field.empty()) {
      const size_t end = std::min(field.find(format.separator), field.size());
      const std::string_view value = field.substr(0, end);
      add(format.trim ? TrimBlanks(value) : value);
      field.remove_prefix(std::min(end + 1, field.size()));
    }
    if (ends_empty) add({});
    return "";
  }
  field = TrimBlanks(field);
  if (field.empty()) return "";
  if (field.size() < 2 || field.front() != '[' || field.back() != ']')
    return "is not a list in brackets";
  field = field.substr(1, field.size() - 2);
  for (bool is_first = true;; is_first = false) {
    SkipBlanks(&field, format.separator);
    if (!field.empty() && field.front() != format.separator) {
      std::string_view value;
      std::string problem = TakeListValue(&field, format.separator, &value);
      if (!problem.empty()) return problem;
      add(value);
    } else if (!field.empty() || !is_first) {
      add({});
    }
    if (field.empty()) return "";
    field.remove_prefix(1);
  }
}

}  // namespace renzan
