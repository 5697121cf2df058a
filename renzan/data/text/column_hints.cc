#include "renzan/data/text/column_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/column_kinds.h"
#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/date.h"

namespace renzan {
namespace {

// Of the years 2000 to 2039: numbers that may be times whatever their column's name is.
constexpr double kMinLikelyTime = 946684800, kMaxLikelyTime = 2208988800;

// How texts are written that would be numbers otherwise, or "".
std::string Notation(std::string_view text) {
  double number = 0;
  for (const std::string_view sign : {"$", "\u20ac", "\u00a3"})
    if (text.starts_with(sign) && IsNumber(TrimBlanks(text.substr(sign.size())), &number))
      return fmt::format("with '{}'", sign);
  if (text.ends_with('%') && IsNumber(TrimBlanks(text.substr(0, text.size() - 1)), &number))
    return "with '%'";
  std::string point(text);
  if (const size_t comma = point.find(','); comma != std::string::npos) {
    point[comma] = '.';
    if (IsNumber(point, &number)) return "with a comma instead of the point";
  }
  return "";
}

}  // namespace

std::string QuotedForYaml(const std::string& text) { return ConfigValue{{text}, ""}.key(); }

std::string HintOnText(const ColumnStatistics& values) {
  const std::vector<std::pair<std::string, int64_t>> all = values.MostFrequent(values.distinct());
  int64_t numbers = 0;
  std::set<std::string> notations;
  std::vector<std::pair<std::string, int64_t>> others;
  for (const auto& value : all) {
    double number = 0;
    if (IsNumber(value.first, &number)) {
      numbers += value.second;
    } else if (const std::string notation = Notation(value.first); !notation.empty()) {
      notations.insert(notation);
    } else {
      others.push_back(value);
    }
  }
  if (others.empty() && notations.size() == 1)
    return fmt::format("numbers {}: change that in the file for {{role: dense}}",
                       *notations.begin());
  if (notations.empty() && others.size() == 1 && numbers > others[0].second)
    return fmt::format("if '{0}' means missing: {{role: dense, missing: [{1}]}}",
                       Escape(ShortText(others[0].first, kShownBytes)),
                       QuotedForYaml(others[0].first));
  return "";
}

std::string HintOnMissing(const ColumnStatistics& values) {
  static constexpr double kUsual[] = {-1, -9, -99, -999, -9999, -99999};
  std::string text;
  for (const auto& [value, count] : values.MostFrequent(values.distinct())) {
    double number = 0;
    if (!IsNumber(value, &number) || number >= 0) continue;
    if (!text.empty() || count < 2 ||
        std::find(std::begin(kUsual), std::end(kUsual), number) == std::end(kUsual))
      return "";
    text = value;
  }
  return text.empty() ? "" : fmt::format("if {0} means missing: missing: [\"{0}\"]", text);
}

std::string HintOnTime(const ColumnStatistics& values) {
  const auto within = [&](double unit) {
    return values.min() >= unit * kMinLikelyTime && values.max() < unit * kMaxLikelyTime;
  };
  for (const auto& [unit, name, format] :
       {std::tuple{1, "seconds", "%s"}, std::tuple{1000, "milliseconds", "%Q"}})
    if (within(unit) && values.is_whole())
      return fmt::format(
          "if they are {} since 1970: {{role: date, date: \"{}\", parts: {{hour: {{role: "
          "categorical}}}}}}",
          name, format);
  return "";
}

std::string HintOnBadDates(const ColumnStatistics& values) {
  if (values.present() < kEnoughRows) return "";
  constexpr size_t kTried = 50;
  std::map<std::string, int> formats;
  for (const auto& [text, count] : values.MostFrequent(kTried)) {
    ColumnStatistics one;
    one.Add(text);
    if (!one.is_number()) ++formats[one.date_format()];
  }
  formats.erase("");
  if (formats.empty()) return "";
  const DateFormat format(std::max_element(formats.begin(), formats.end(), [](auto& a, auto& b) {
                            return a.second < b.second;
                          })->first);
  int64_t dates = 0, all = 0;
  std::string other;
  for (const auto& [text, count] : values.MostFrequent(values.distinct())) {
    all += count;
    if (format.Parse(text))
      dates += count;
    else if (other.empty())
      other = text;
  }
  if (other.empty() || static_cast<double>(dates) < kNearlyAll * static_cast<double>(all))
    return "";
  std::vector<std::string> parts;
  if (format.has_day()) parts.emplace_back("weekday: {role: categorical}");
  if (format.has_hour()) parts.emplace_back("hour: {role: categorical}");
  return fmt::format(
      "if such as '{}' are bad rows among dates: {{role: date, date: {}, parts: {{{}}}}}",
      Escape(ShortText(other, kShownBytes)), QuotedForYaml(format.text()), fmt::join(parts, ", "));
}

std::string HintOnBags(const ColumnStatistics& values, const std::string& delimiter) {
  const std::string separator(1, values.possible_bag_separator());
  if (separator[0] == 0) return "";
  if (separator == delimiter)
    return fmt::format("if '{}' separates several values, write another character in the file",
                       separator);
  return fmt::format("if '{}' separates several values: {{role: multi_hot, separator: \"{}\"}}",
                     separator, separator);
}

}  // namespace renzan
