#include "renzan/data/text/column_kinds.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "renzan/data/text/bag.h"
#include "renzan/data/text/column_hints.h"

namespace renzan {
namespace {

// Seconds since 1970 of the years 1973 to 2286.
constexpr double kMinUnixTime = 1e8, kMaxUnixTime = 1e10;

// Whether it is a usual name of ids, which are whole numbers: user, sku, itemid.
bool IsEntityName(const std::string& name) {
  static constexpr std::string_view kEntities[] = {
      "user",   "customer", "visitor",    "member", "item",     "product", "movie",  "video",
      "song",   "artist",   "article",    "book",   "ad",       "advert",  "banner", "campaign",
      "seller", "brand",    "advertiser", "site",   "category", "store",   "shop",   "merchant",
      "sku",    "creative", "publisher",  "device", "query",    "session"};
  static constexpr std::string_view kIds[] = {"uid", "iid", "pid", "cid", "sid", "gid", "mid"};
  std::string lower = Lower(name);
  if (std::find(std::begin(kIds), std::end(kIds), lower) != std::end(kIds)) return true;
  if (lower.ends_with("id")) lower.resize(lower.size() - 2);
  return std::find(std::begin(kEntities), std::end(kEntities), lower) != std::end(kEntities);
}

}  // namespace

std::string Lower(std::string_view text) {
  std::string lower;
  for (const unsigned char c : text) lower += static_cast<char>(std::tolower(c));
  return lower;
}

bool HasOwnValueInEveryRow(const ColumnStatistics& values) {
  return values.present() >= kEnoughRows &&
         static_cast<double>(values.distinct()) >=
             kNearlyAll * static_cast<double>(values.present_while_counted());
}

bool IsKey(const ColumnStatistics& values) {
  if (values.present() < kEnoughRows || values.missing() > 0) return false;
  if (static_cast<int64_t>(values.distinct()) != values.present_while_counted()) return false;
  const auto all = values.MostFrequent(values.distinct());
  return std::none_of(all.begin(), all.end(),
                      [](const auto& value) { return value.first.find(' ') != std::string::npos; });
}

bool IsIdName(const std::string& name) {
  const std::string lower = Lower(name);
  return lower == "id" || name.ends_with("Id") || name.ends_with("ID") || lower.ends_with("_id") ||
         lower.ends_with("-id") || lower.ends_with(" id") ||
         lower.find("zip") != std::string::npos || lower.ends_with("code");
}

bool HoldsIds(const Column& column) {
  return IsIdName(column.name) ||
         (IsEntityName(column.name) && column.values.is_whole() && column.values.min() >= 0);
}

bool FillsItsRange(const ColumnStatistics& values) {
  constexpr size_t kMany = 500;
  return values.is_whole() && values.distinct() > kMany &&
         2 * static_cast<double>(values.distinct()) >= values.max() - values.min() + 1;
}

bool IsUnixTime(const Column& column) {
  const std::string lower = Lower(column.name);
  const bool named = lower.find("time") != std::string::npos ||
                     lower.find("date") != std::string::npos || lower == "ts" ||
                     lower.ends_with("_ts") || lower.ends_with("_at");
  const std::string format = column.values.date_format();
  const double unit = format == "%Q" ? 1e3 : 1;
  return named && (format == "%Q" || format.starts_with("%s")) &&
         column.values.min() >= unit * kMinUnixTime && column.values.max() < unit * kMaxUnixTime;
}

bool IsDate(const Column& column) {
  const std::string format = column.values.date_format();
  return !format.empty() && ((format != "%Q" && !format.starts_with("%s")) || IsUnixTime(column));
}

namespace {

// How many numbers each of these lists has; 0 if they are other lists.
int64_t DimensionOf(const std::vector<std::pair<std::string, int64_t>>& texts,
                    const BagFormat& format) {
  int64_t dimension = 0;
  bool whole = true;
  std::vector<std::string_view> parts;
  for (const auto& [text, count] : texts) {
    parts.clear();
    if (!SplitBag(
             text, format, [](std::string_view) { return false; }, &parts)
             .empty())
      return 0;
    for (const std::string_view part : parts) {
      double number = 0;
      if (!IsNumber(part, &number)) return 0;
      whole &= number == std::floor(number);
    }
    if (dimension != 0 && dimension != std::ssize(parts)) return 0;
    dimension = std::ssize(parts);
  }
  return whole ? 0 : dimension;
}

}  // namespace

std::string DescribeVector(const ColumnStatistics& values, const std::string& delimiter) {
  constexpr size_t kSample = 1000;
  const auto texts = values.MostFrequent(kSample);
  const bool brackets = values.in_brackets();
  for (const std::string separator : {",", "|", ";", " "}) {
    if (!brackets && separator == delimiter) continue;
    const int64_t dimension =
        DimensionOf(texts, {.separator = separator[0], .brackets = brackets, .keep_empty = true});
    // 1.234,56 is one number in parts of the world.
    if (dimension < 2 || (dimension == 2 && separator == "," && !brackets)) continue;
    std::string text = fmt::format("role: dense, dimension: {}", dimension);
    if (brackets) text += ", brackets: true";
    if (separator != (brackets ? "," : "|"))
      text += fmt::format(", separator: {}", QuotedForYaml(separator));
    return text;
  }
  return "";
}

bool IsConstant(const ColumnStatistics& values) {
  return values.distinct() == 1 && values.missing() == 0;
}

}  // namespace renzan
