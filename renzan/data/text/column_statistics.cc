#include "renzan/data/text/column_statistics.h"

#include <algorithm>
#include <cmath>
#include <optional>

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
                                        "%Y/%m/%d",
                                        "%Y/%m/%d %H:%M:%S",
                                        "%d.%m.%Y",
                                        "%m/%d/%Y",
                                        "%d/%m/%Y",
                                        "%m/%d/%Y %H:%M",
                                        "%d/%m/%Y %H:%M",
                                        "%d-%b-%Y",
                                        "%s"};
constexpr char kBagSeparators[] = {'|', ';', '^'};
// In a bag column, at least one in this many fields has several values.
constexpr int64_t kBagShare = 20;

}  // namespace

bool IsNumber(std::string_view text, double* number) {
  const std::optional<double> parsed = ParseNumber(text);
  if (!parsed || !std::isfinite(static_cast<float>(*parsed))) return false;
  *number = *parsed;
  return true;
}

ColumnStatistics::ColumnStatistics() {
  for (const char* format : kDateFormats) dates_.push_back({.format = DateFormat(format)});
  for (const char separator : kBagSeparators) bags_.push_back({.separator = separator});
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
  if (counts_.size() < kMaxDistinct) {
    ++counts_[std::string(value)];
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
  AddToBags(value);
}

void ColumnStatistics::AddToDates(std::string_view value) {
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

void ColumnStatistics::AddToBags(std::string_view value) {
  for (Bags& bags : bags_) {
    if (value.find(bags.separator) == std::string_view::npos) continue;
    size_t values = 0;
    for (std::string_view rest = value; !rest.empty();) {
      const size_t end = std::min(rest.find(bags.separator), rest.size());
      if (end > 0) ++values;
      if (end > 0 && bags.values.size() < kMaxDistinct) bags.values.emplace(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    bags.fields += values > 1;
  }
}

std::string ColumnStatistics::date_format() const {
  return present() == 0 || dates_.empty() ? "" : dates_.front().format.text();
}

std::vector<std::string> ColumnStatistics::varying_date_parts() const {
  std::vector<std::string> parts;
  if (date_format().empty()) return parts;
  if (dates_.front().day_varies) parts.emplace_back("day");
  if (dates_.front().weekday_varies) parts.emplace_back("weekday");
  if (dates_.front().hour_varies) parts.emplace_back("hour");
  return parts;
}

char ColumnStatistics::bag_separator() const {
  for (const Bags& bags : bags_) {
    // Single values repeat more than their combinations.
    const bool few = bags.values.size() <= counts_.size();
    if (bags.fields * kBagShare >= present() && bags.fields > 0 && few) return bags.separator;
  }
  return 0;
}

std::vector<std::pair<std::string, int64_t>> ColumnStatistics::MostFrequent(size_t limit) const {
  std::vector<std::pair<std::string, int64_t>> values(counts_.begin(), counts_.end());
  const size_t kept = std::min(limit, values.size());
  std::partial_sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept),
                    values.end(), [](const auto& a, const auto& b) {
                      return a.second != b.second ? a.second > b.second : a.first < b.first;
                    });
  values.resize(kept);
  return values;
}

}  // namespace renzan
