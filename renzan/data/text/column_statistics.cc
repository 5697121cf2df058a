#include "renzan/data/text/column_statistics.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

constexpr std::string_view kMissingTexts[] = {"?",   "NA",   "N/A",  "n/a",  "nan", "NaN",
                                              "NAN", "null", "NULL", "None", "\\N", "#N/A"};
constexpr const char* kDateFormats[] = {"%Y-%m-%d",
                                        "%Y-%m-%d %H:%M:%S",
                                        "%Y-%m-%d %H:%M",
                                        "%Y-%m-%dT%H:%M:%S",
                                        "%Y-%m-%dT%H:%M:%SZ",
                                        "%Y-%m-%d %H:%M:%S.%f",
                                        "%Y-%m-%dT%H:%M:%S.%fZ",
                                        "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%dT%H:%M:%S.%f",
                                        "%Y/%m/%d",
                                        "%Y/%m/%d %H:%M:%S",
                                        "%d.%m.%Y",
                                        "%d.%m.%Y %H:%M",
                                        "%d.%m.%Y %H:%M:%S",
                                        "%m/%d/%Y",
                                        "%d/%m/%Y",
                                        "%m/%d/%Y %H:%M",
                                        "%d/%m/%Y %H:%M",
                                        "%m/%d/%Y %H:%M:%S",
                                        "%d/%m/%Y %H:%M:%S",
                                        "%m/%d/%Y %I:%M %p",
                                        "%d/%m/%Y %I:%M %p",
                                        "%m/%d/%Y %I:%M:%S %p",
                                        "%d/%m/%Y %I:%M:%S %p",
                                        "%Y-%m-%d %I:%M %p",
                                        "%Y-%m-%d %I:%M:%S %p",
                                        "%d-%b-%Y",
                                        "%a %b %e %H:%M:%S %Y",
                                        "%a, %d %b %Y %H:%M:%S GMT",
                                        "%s",
                                        "%s.%f",
                                        "%Q"};
// As web servers log dates and as mails have them, before an offset like this one.
constexpr struct {
  std::string_view format, offset;
} kDatesBeforeOffsets[] = {{"[%d/%b/%Y:%H:%M:%S", " +0000]"}, {"%a, %d %b %Y %H:%M:%S", " +0000"}};
constexpr std::string_view kBagSeparators = "|;^";
// These separate the words of prose, too.
constexpr std::string_view kPossibleBagSeparators = ", ";
// In a bag column, at least one in this many fields has several values.
constexpr int64_t kBagShare = 10;

// Calls visit(part) for the parts of a text that are not empty.
template <typename Visitor>
void ForEachPart(std::string_view text, char separator, Visitor visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The offset from UTC at the end of a time, which is like `example`: 0 stands for any digit, and +
// for either sign. "" if there is none.
std::string_view OffsetLike(std::string_view example, std::string_view time) {
  if (time.size() <= example.size()) return "";
  const std::string_view offset = time.substr(time.size() - example.size());
  for (size_t i = 0; i < example.size(); ++i) {
    const bool fits = example[i] == '0'   ? offset[i] >= '0' && offset[i] <= '9'
                      : example[i] == '+' ? offset[i] == '+' || offset[i] == '-'
                                          : offset[i] == example[i];
    if (!fits) return "";
  }
  return offset;
}

}  // namespace

bool IsNumber(std::string_view text, double* number) {
  const std::optional<double> parsed = ParseNumber(text);
  if (!parsed || !std::isfinite(static_cast<float>(*parsed))) return false;
  *number = *parsed;
  return true;
}

ColumnStatistics::ColumnStatistics() {
  for (const char* format : kDateFormats) dates_.push_back({.format = DateFormat(format)});
}

void ColumnStatistics::Add(std::string_view field) {
  ++rows_;
  const std::string_view value = TrimBlanks(field);
  has_blanks_ |= value.size() != field.size() && !value.empty();
  if (value.empty()) {
    ++missing_;
    return;
  }
  if (std::find(std::begin(kMissingTexts), std::end(kMissingTexts), value) !=
      std::end(kMissingTexts)) {
    ++missing_;
    ++missing_texts_[std::string(value)];
    return;
  }
  if (!many_distinct()) {
    if (++counts_[std::string(value)] == 1) bytes_ += value.size();
    present_when_full_ = present();
  } else if (const auto found = counts_.find(std::string(value)); found != counts_.end()) {
    ++found->second;
  }
  if (double number = 0; IsNumber(value, &number)) {
    min_ = numbers_ == 0 ? number : std::min(min_, number);
    max_ = numbers_ == 0 ? number : std::max(max_, number);
    whole_ &= number == std::floor(number);
    ++numbers_;
    const float dense = static_cast<float>(number);
    spread_.Add({&dense, 1});
  }
  AddToDates(value);
  brackets_ += value.front() == '[' && value.back() == ']';
}

void ColumnStatistics::AddToDates(std::string_view value) {
  // The first value's offset, as text: all others must have the same.
  if (const std::string_view offset = OffsetLike("+00:00", value);
      present() == 1 && !offset.empty())
    for (const std::string_view format : kDateFormats)
      if (format.ends_with("%M") || format.ends_with("%S") || format.ends_with("%f"))
        dates_.push_back({.format = DateFormat(fmt::format("{}{}", format, offset))});
  for (const auto& date : kDatesBeforeOffsets)
    if (const std::string_view offset = OffsetLike(date.offset, value);
        present() == 1 && !offset.empty())
      dates_.push_back({.format = DateFormat(fmt::format("{}{}", date.format, offset))});
  std::erase_if(dates_, [&](Dates& dates) {
    const std::optional<DateParts> parts = dates.format.Parse(value);
    if (!parts) return true;
    if (present() == 1) dates.first = *parts;
    dates.day_varies |= parts->day != dates.first.day;
    dates.weekday_varies |= parts->weekday != dates.first.weekday;
    dates.hour_varies |= parts->hour != dates.first.hour;
    return false;
  });
}

std::string ColumnStatistics::date_format() const {
  return present() == 0 || dates_.empty() ? "" : dates_.front().format.text();
}

std::string ColumnStatistics::date_format_with_day_first() const {
  const std::string format = date_format();
  constexpr std::string_view kMonthFirst = "%m/%d/", kDayFirst = "%d/%m/";
  if (!format.starts_with(kMonthFirst)) return "";
  const std::string other = std::string(kDayFirst) + format.substr(kMonthFirst.size());
  const bool fits = std::any_of(dates_.begin(), dates_.end(),
                                [&](const Dates& dates) { return dates.format.text() == other; });
  return fits ? other : "";
}

std::vector<std::string> ColumnStatistics::varying_date_parts() const {
  std::vector<std::string> parts;
  if (date_format().empty()) return parts;
  if (dates_.front().day_varies) parts.emplace_back("day");
  if (dates_.front().weekday_varies) parts.emplace_back("weekday");
  if (dates_.front().hour_varies) parts.emplace_back("hour");
  return parts;
}

char ColumnStatistics::bag_separator() const { return FirstBagSeparator(kBagSeparators); }

char ColumnStatistics::possible_bag_separator() const {
  return FirstBagSeparator(kPossibleBagSeparators);
}

char ColumnStatistics::FirstBagSeparator(std::string_view separators) const {
  const auto found = std::find_if(separators.begin(), separators.end(),
                                  [&](char separator) { return IsBagSeparator(separator); });
  return found == separators.end() ? 0 : *found;
}

// A separator is usual in its column, and the values of its bags occur in other texts too, unlike
// the halves of a title with a semicolon.
bool ColumnStatistics::IsBagSeparator(char separator) const {
  int64_t fields = 0, bags = 0;
  for (const auto& [text, count] : counts_) {
    fields += count;
    int parts = 0;
    if (text.find(separator) != std::string::npos)
      ForEachPart(text, separator, [&](std::string_view) { ++parts; });
    if (parts > 1) bags += count;
  }
  if (bags == 0 || bags * kBagShare < fields) return false;
  struct Texts {
    int64_t all = 0, bags = 0;
  };
  std::unordered_map<std::string_view, Texts> texts;  // by part
  for (const auto& [text, count] : counts_) {
    std::set<std::string_view> parts;
    ForEachPart(text, separator, [&](std::string_view part) { parts.insert(part); });
    for (const std::string_view part : parts) {
      ++texts[part].all;
      texts[part].bags += parts.size() > 1;
    }
  }
  int64_t values = 0, repeated = 0;
  for (const auto& [part, in] : texts) {
    values += in.bags;
    if (in.all > 1) repeated += in.bags;
  }
  return 2 * repeated >= values;
}

std::vector<std::pair<std::string, int64_t>> ColumnStatistics::MostFrequent(size_t limit) const {
  std::vector<const std::pair<const std::string, int64_t>*> values;  // their texts may be long
  values.reserve(counts_.size());
  for (const auto& value : counts_) values.push_back(&value);
  const size_t kept = std::min(limit, values.size());
  std::partial_sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept),
                    values.end(), [](const auto* a, const auto* b) {
                      return a->second != b->second ? a->second > b->second : a->first < b->first;
                    });
  std::vector<std::pair<std::string, int64_t>> found;
  found.reserve(kept);
  for (size_t i = 0; i < kept; ++i) found.emplace_back(*values[i]);
  return found;
}

}  // namespace renzan
